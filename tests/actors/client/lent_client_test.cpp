// Clients that wait for a step compute it themselves (devices/lent_thread.hpp).
#include <doctest/doctest.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <string>
#include <thread>
#include <vector>

#include "ops/api.hpp"
#include "tests/actors/support/busy_lane.hpp"
#include "tests/actors/support/sessions.hpp"
#include "tests/actors/support/square.hpp"

using namespace troupe;
using namespace troupe::test;

namespace {

// Nodes that this thread ran.
std::size_t nodes_here(const Timeline& timeline) {
  const std::string me = "(thread " + std::to_string(syscall(SYS_gettid)) + ")";
  std::size_t nodes = 0;
  for (const ProcessTimeline& process : timeline.processes)
    for (const Track& track : process.tracks)
      if (track.name.find(me) != std::string::npos)
        for (const Span& span : track.spans)
          nodes += span.kind == Span::Kind::node && span.name == "MatMul";
  return nodes;
}

}  // namespace

TEST_CASE("a client that waits for a step computes it, once a lane sleeps") {
  for (int threads : {1, 2}) {
    Square p;
    Cluster cluster;
    cluster.threads = threads;
    Session session(p.g, cluster);
    const CompiledStep step = session.compile({p.y}, {}, {p.x});
    for (bool here = false; !here;) {
      REQUIRE(session.try_start_trace().ok());
      step.run({p.fed});
      auto timeline = session.try_stop_trace();
      REQUIRE(timeline.ok());
      here = nodes_here(*timeline) == 1;
    }
  }
}

TEST_CASE("a client with a timeout does not wait for the kernel that runs when it passes") {
  Graph g;
  BusyLane busy(g, kTask0);
  Session session(g, one_thread());
  const CompiledStep step = session.compile({busy.work});
  const auto late = [&](std::chrono::milliseconds timeout) {
    return step.try_run({}, {.timeout = timeout}).status().code() == Code::deadline_exceeded;
  };
  // Of a slow machine no lane may have the work in that time.
  for (std::chrono::milliseconds timeout(30); !busy.at_work(); timeout *= 2) CHECK(late(timeout));
  CHECK(late(std::chrono::milliseconds(30)));  // while the lane is at work
  busy.release();
}

TEST_CASE("clients that wait at the same time, for steps that write, lose nothing") {
  constexpr int kClients = 4, kSteps = 50;
  for (int threads : {1, 2, 3}) {
    Square p;
    Variable w = variable(p.g, "w", Tensor::zeros(DType::f32, Shape{256, 256}).value());
    const Op count = assign_add(w, p.y * constant(p.g, 0.0f) + constant(p.g, 1.0f));
    Cluster cluster;
    cluster.threads = threads;
    Session session(p.g, cluster);
    session.init();
    const CompiledStep step = session.compile({p.y}, {count}, {p.x});
    const Tensor right = step.run({p.fed}).at(0);
    std::atomic<int> wrong{0};
    std::vector<std::thread> clients;
    for (int c = 0; c < kClients; ++c)
      clients.emplace_back([&] {
        for (int i = 0; i < kSteps; ++i) wrong += !Tensor::same(step.run({p.fed}).at(0), right);
      });
    for (auto& client : clients) client.join();
    CHECK(wrong == 0);
    const Tensor counted = session.variables().at(0).second;
    for (std::int64_t i = 0; i < counted.elements(); ++i)
      REQUIRE(counted.data<float>()[i] == float(1 + kClients * kSteps));
  }
}
