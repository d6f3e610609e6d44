#include <chrono>

#include "apps/bench/rows.hpp"
#include "apps/troupe.hpp"

namespace troupe {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int kIterations = 2'000;

// Counts here and there, or one value that goes there and comes back.
struct SpreadLoop {
  const char* name;
  bool there_and_back;
  const char *here, *there;
  Cluster cluster;
};

std::vector<SpreadLoop> spread_loops() {
  Cluster two_devices, two_processes;
  two_devices.devices = {"CPU", "CPU"};
  two_processes.workers = 2;
  const char *first = "/job:worker/task:0/cpu:0", *second = "/job:worker/task:1/cpu:0";
  return {{"two_partitions", false, "/cpu:0", "/cpu:1", two_devices},
          {"two_partitions_there_and_back", true, "/cpu:0", "/cpu:1", two_devices},
          {"two_processes", false, first, second, two_processes},
          {"there_and_back", true, first, second, two_processes}};
}

std::vector<Output> build(Graph& g, const SpreadLoop& loop) {
  auto here = g.with_device(loop.here);
  auto [i, x] = while_loop(
      std::tuple{constant(g, 0), constant(g, 0.0)},
      [&](Output i, Output) { return i < kIterations; },
      [&](Output i, Output x) {
        Output next;
        {
          auto there = g.with_device(loop.there);
          next = x + 1.0;
        }
        return std::tuple{i + 1, loop.there_and_back ? next + 1.0 : next};
      });
  return {i, x};
}

Expected<BenchRow> measure(const SpreadLoop& loop, const BenchOptions& options) {
  Graph graph;
  const std::vector<Output> last = build(graph, loop);
  Session session(graph, loop.cluster);
  TROUPE_TRY(CompiledStep step, session.try_compile(last, {}));
  TROUPE_TRY(step.try_run());
  std::vector<double> ns;
  for (int round = 0; round < options.rounds; ++round) {
    const auto begin = Clock::now();
    TROUPE_TRY(step.try_run());
    ns.push_back(std::chrono::duration<double, std::nano>(Clock::now() - begin).count() /
                 kIterations);
  }
  TROUPE_TRY(session.try_close());
  return BenchRow{std::string("executor.loop.") + loop.name, median(ns), "ns/iteration"};
}

}  // namespace

Expected<std::vector<BenchRow>> bench_spread_loops(const BenchOptions& options) {
  std::vector<BenchRow> rows;
  for (const SpreadLoop& loop : spread_loops()) {
    if (!wanted(options, std::string("executor.loop.") + loop.name)) continue;
    TROUPE_TRY(BenchRow row, measure(loop, options));
    rows.push_back(std::move(row));
  }
  return rows;
}

}  // namespace troupe
