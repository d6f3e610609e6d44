#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <thread>

#include "apps/bench/rows.hpp"
#include "apps/troupe.hpp"

namespace troupe {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int kEndsPerRound = 4;
// For so long a loop runs before it is ended.
constexpr std::chrono::milliseconds kRuns{20};

// A value that goes there and back for ever.
struct Endless {
  std::string suffix;
  const char *here, *there;
  Cluster cluster;
};

std::vector<Endless> endless_loops() {
  Cluster one_thread, two_processes;
  one_thread.threads = 1;
  two_processes.workers = 2;
  return {
      {"", "/cpu:0", "/cpu:0", one_thread},
      {"_two_processes", "/job:worker/task:0/cpu:0", "/job:worker/task:1/cpu:0", two_processes}};
}

Output build(Graph& g, const Endless& loop) {
  auto here = g.with_device(loop.here);
  return while_loop(
      constant(g, 0.5), [](Output x) { return x < 2.0; },
      [&](Output x) {
        Output y;
        {
          auto there = g.with_device(loop.there);
          y = x * 1.0;
        }
        return y * 1.0;
      });
}

double ms_since(Clock::time_point then) {
  return std::chrono::duration<double, std::milli>(Clock::now() - then).count();
}

Status expect(const Status& ended, Code code) {
  if (ended.code() == code) return ok_status();
  return ended.ok() ? internal_error("an endless loop came to an end") : ended;
}

// How much later than its deadline a run returns.
Status end_by_deadline(const CompiledStep& step, std::vector<double>& ms) {
  RunOptions options;
  options.timeout = kRuns;
  const auto deadline = Clock::now() + kRuns;
  TROUPE_TRY(expect(step.try_run({}, options).status(), Code::deadline_exceeded));
  ms.push_back(ms_since(deadline));
  return ok_status();
}

// How much later than another thread begins to close the session.
Status end_by_close(Session& session, const CompiledStep& step, std::vector<double>& ms) {
  Clock::time_point began;
  Status closed;
  std::thread other([&] {
    std::this_thread::sleep_for(kRuns);
    began = Clock::now();
    closed = session.try_close();
  });
  const Status ended = step.try_run().status();
  const auto returned = Clock::now();
  other.join();
  TROUPE_TRY(expect(ended, Code::cancelled));
  ms.push_back(std::chrono::duration<double, std::milli>(returned - began).count());
  return closed;
}

Status measure(const Endless& loop, bool close, std::vector<double>& ms) {
  Graph graph;
  const Output last = build(graph, loop);
  Session session(graph, loop.cluster);
  TROUPE_TRY(CompiledStep step, session.try_compile({last}));
  return close ? end_by_close(session, step, ms) : end_by_deadline(step, ms);
}

BenchRow row_of(std::string name, const std::vector<double>& ms) {
  BenchRow row{std::move(name), median(ms), "ms"};
  row.details["worst_ms"] = fmt::format("{}", *std::max_element(ms.begin(), ms.end()));
  row.details["runs"] = std::to_string(ms.size());
  return row;
}

}  // namespace

Expected<std::vector<BenchRow>> bench_loop_ends(const BenchOptions& options) {
  std::vector<BenchRow> rows;
  for (const Endless& loop : endless_loops())
    for (const bool close : {false, true}) {
      std::string name =
          std::string("executor.loop.end_by_") + (close ? "close" : "deadline") + loop.suffix;
      if (!wanted(options, name)) continue;
      std::vector<double> ms;
      for (int k = 0; k < options.rounds * kEndsPerRound; ++k) TROUPE_TRY(measure(loop, close, ms));
      rows.push_back(row_of(std::move(name), ms));
    }
  return rows;
}

}  // namespace troupe
