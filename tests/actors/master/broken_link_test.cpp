// A connection between two workers that breaks, while both live on.
#include <dirent.h>
#include <doctest/doctest.h>

#include <chrono>
#include <future>

#include "actors/client/session.hpp"
#include "tests/actors/support/nodes.hpp"
#include "tests/actors/support/tcp_workers.hpp"

using namespace troupe;
using namespace troupe::test;

namespace {

std::uint16_t port_of(const sockaddr_in& address) { return ntohs(address.sin_port); }

// Shuts down each socket of this process that is connected to one of these ports. How many.
int break_connections_to(std::uint16_t one, std::uint16_t other) {
  int broken = 0;
  DIR* all = opendir("/proc/self/fd");
  REQUIRE(all != nullptr);
  while (dirent* entry = readdir(all)) {
    const int fd = std::atoi(entry->d_name);
    sockaddr_in peer{};
    socklen_t size = sizeof peer;
    if (getpeername(fd, reinterpret_cast<sockaddr*>(&peer), &size) != 0) continue;
    if (peer.sin_family != AF_INET || (port_of(peer) != one && port_of(peer) != other)) continue;
    broken += shutdown(fd, SHUT_RDWR) == 0 ? 1 : 0;
  }
  closedir(all);
  return broken;
}

}  // namespace

TEST_CASE("a link between two live workers that breaks ends the run with both their names") {
  ReservedPort master, ports[2];
  std::future<Status> workers[2];
  for (int i : {0, 1}) {
    WorkerProcessOptions options;
    options.master = {"127.0.0.1", master.number()};
    options.listen = {"127.0.0.1", ports[i].number()};
    options.silence = std::chrono::hours(1);  // nobody is lost by being slow
    workers[i] = std::async(std::launch::async, [options] { return run_worker(options); });
  }
  Cluster cluster;
  cluster.listen = "127.0.0.1:" + std::to_string(master.number());
  cluster.wait_for = 2;
  cluster.threads = 1;
  cluster.silence = std::chrono::hours(1);
  {
    Graph g;
    Output queues[2] = {queue_on(g, kTask0), queue_on(g, kTask1)};
    std::vector<Output> taken;
    for (const Output& queue : queues) taken.push_back(take_from(queue));
    Session session(g, cluster);
    PendingRun waits = session.compile(taken).start();
    REQUIRE(break_connections_to(ports[0].number(), ports[1].number()) > 0);
    auto begin = std::chrono::steady_clock::now();
    Status status = waits.try_get().status();
    auto took = std::chrono::steady_clock::now() - begin;
    CAPTURE(status.text());
    CHECK(status.code() == Code::unavailable);
    for (const std::string& part :
         {"127.0.0.1:" + std::to_string(ports[0].number()),
          "127.0.0.1:" + std::to_string(ports[1].number()), std::string("its link to worker 0")})
      CHECK(status.text().find(part) != std::string::npos);
    MESSAGE("a broken link was told after ms: " << took / std::chrono::milliseconds(1));
    Status next = session.try_run({constant(g, 1.0f)}).status();
    CHECK(next.code() == Code::unavailable);
  }
  // Of the job that lost one, the other is not told that it is done: it may wait for it.
  for (auto& worker : workers) CHECK(worker.get().code() == Code::unavailable);
}
