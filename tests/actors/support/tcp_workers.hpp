// A cluster over real connections in one process: workers on threads of their own.
#pragma once

#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <string>
#include <thread>
#include <vector>

#include "actors/cluster.hpp"
#include "actors/runtime/worker_process.hpp"

namespace troupe::test {

// A port that a master can listen on, and that nobody else is given: its workers, for one, who
// listen as well and may begin before it does.
class ReservedPort {
 public:
  ReservedPort() : socket_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    const int on = 1;
    setsockopt(socket_, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    bool bound = bind(socket_, reinterpret_cast<sockaddr*>(&address), size) == 0 &&
                 getsockname(socket_, reinterpret_cast<sockaddr*>(&address), &size) == 0;
    TROUPE_CHECK(bound, "there is a free port");
    number_ = ntohs(address.sin_port);
  }
  ~ReservedPort() { close(); }
  ReservedPort(const ReservedPort&) = delete;
  ReservedPort& operator=(const ReservedPort&) = delete;

  std::uint16_t number() const { return number_; }
  int socket() const { return socket_; }
  void close() {
    if (socket_ >= 0) ::close(socket_);
    socket_ = -1;
  }

 private:
  int socket_;
  std::uint16_t number_ = 0;
};

// Starts the workers, which wait for a session on cluster(). Made before that session, so that it
// ends after it: its destructor waits for the workers to leave. A worker that cannot join is
// started again, as a machine's service manager would: a starved process may take longer than a
// handshake is given. If that does not help, the session fails and does not wait for it.
class TcpWorkers {
 public:
  explicit TcpWorkers(int workers, int threads = 1) {
    cluster_.listen = "127.0.0.1:" + std::to_string(port_.number());
    cluster_.wait_for = workers;
    cluster_.threads = threads;
    cluster_.secret = "sixteen and more bytes";
    cluster_.stop = [this] { return gave_up_.load(); };
    cluster_.silence = std::chrono::hours(1);  // of starved threads
    WorkerProcessOptions options;
    options.master = {"127.0.0.1", port_.number()};
    options.secret = cluster_.secret;
    options.silence = cluster_.silence;
    for (int w = 0; w < workers; ++w) threads_.emplace_back([this, options] { serve(options); });
  }
  ~TcpWorkers() {
    over_ = true;
    for (std::thread& thread : threads_) thread.join();
  }
  TcpWorkers(const TcpWorkers&) = delete;
  TcpWorkers& operator=(const TcpWorkers&) = delete;
  const Cluster& cluster() const { return cluster_; }

 private:
  void serve(const WorkerProcessOptions& options) {
    for (int starts = 0; starts < 4; ++starts)
      if (run_worker(options).ok() || over_) return;
    gave_up_ = true;
  }

  ReservedPort port_;
  Cluster cluster_;
  std::atomic<bool> over_{false}, gave_up_{false};
  std::vector<std::thread> threads_;
};

}  // namespace troupe::test
