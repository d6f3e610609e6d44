// A cluster over real connections in one process: workers on threads of their own.
#pragma once

#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <string>
#include <thread>
#include <vector>

#include "actors/cluster.hpp"
#include "actors/node.hpp"

namespace troupe::test {

// Starts the workers, which wait for a session on cluster(). Made before that session, so that it
// ends after it: its destructor waits for the workers to leave.
class TcpWorkers {
 public:
  explicit TcpWorkers(int workers, int threads = 1) {
    std::uint16_t port = free_port();
    cluster_.listen = "127.0.0.1:" + std::to_string(port);
    cluster_.wait_for = workers;
    cluster_.threads = threads;
    cluster_.secret = "sixteen and more bytes";
    NodeOptions options;
    options.master = {"127.0.0.1", port};
    options.secret = cluster_.secret;
    for (int w = 0; w < workers; ++w)
      threads_.emplace_back([options] { (void)run_worker(options); });
  }
  ~TcpWorkers() {
    for (std::thread& thread : threads_) thread.join();
  }
  const Cluster& cluster() const { return cluster_; }

 private:
  // One that nobody listens on at the moment.
  static std::uint16_t free_port() {
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    bool bound = bind(fd, reinterpret_cast<sockaddr*>(&address), size) == 0 &&
                 getsockname(fd, reinterpret_cast<sockaddr*>(&address), &size) == 0;
    close(fd);
    TROUPE_CHECK(bound, "there is a free port");
    return ntohs(address.sin_port);
  }

  Cluster cluster_;
  std::vector<std::thread> threads_;
};

inline const char* const kTask0 = "/job:worker/task:0";
inline const char* const kTask1 = "/job:worker/task:1";

}  // namespace troupe::test
