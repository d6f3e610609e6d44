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
    const std::uint16_t port = reserve_port();
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
    close(reserved_);
  }
  TcpWorkers(const TcpWorkers&) = delete;
  TcpWorkers& operator=(const TcpWorkers&) = delete;
  const Cluster& cluster() const { return cluster_; }

 private:
  // One that the master can listen on, and that nobody else is given: the workers, for one, who
  // listen as well and may begin before it does.
  std::uint16_t reserve_port() {
    reserved_ = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    const int on = 1;
    setsockopt(reserved_, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    bool bound = bind(reserved_, reinterpret_cast<sockaddr*>(&address), size) == 0 &&
                 getsockname(reserved_, reinterpret_cast<sockaddr*>(&address), &size) == 0;
    TROUPE_CHECK(bound, "there is a free port");
    return ntohs(address.sin_port);
  }

  Cluster cluster_;
  std::vector<std::thread> threads_;
  int reserved_ = -1;
};

inline const char* const kTask0 = "/job:worker/task:0";
inline const char* const kTask1 = "/job:worker/task:1";

}  // namespace troupe::test
