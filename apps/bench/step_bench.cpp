#include <fmt/format.h>

#include <chrono>
#include <cmath>
#include <numeric>
#include <optional>
#include <thread>

#include "apps/bench/message_count.hpp"
#include "apps/bench/peer_rounds.hpp"
#include "apps/bench/rows.hpp"
#include "apps/bench/tensorflow_peer.hpp"
#include "apps/troupe.hpp"

namespace troupe {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int kNodes = 10;
constexpr int kStepsPerRound = 2'000;
constexpr int kColdStepsPerRound = 40;
constexpr double kPeersSeconds = 0.1;  // of a round
// Lanes spin for 50 us and CAF's workers back off within a few ms: after this all of them sleep.
constexpr std::chrono::milliseconds kPause{20};

// Ten nodes in a chain that do nothing: what is left is the price of a step.
Op null_chain(Graph& graph) {
  Op last = no_op(graph);
  for (int i = 1; i < kNodes; ++i) {
    auto after = graph.with_control({last});
    last = no_op(graph);
  }
  return last;
}

Expected<double> timed_run(const CompiledStep& step) {
  auto begin = Clock::now();
  TROUPE_TRY(step.try_run());
  return std::chrono::duration<double, std::micro>(Clock::now() - begin).count();
}

// The microseconds of each step of a round.
Expected<std::vector<double>> timed_round(const CompiledStep& step) {
  std::vector<double> steps;
  for (int i = 0; i < kStepsPerRound; ++i) {
    TROUPE_TRY(double us, timed_run(step));
    steps.push_back(us);
  }
  return steps;
}

// The messages that actors of this process handle for one step, those to and from other processes
// included: what more steps cost more. A heartbeat in between does not count to a whole message.
Expected<BenchRow> count_messages(const std::string& family, const Cluster& cluster) {
  constexpr int kSteps = 500;
  Graph graph;
  Op last = null_chain(graph);
  CountingSystem counting;
  Session session(graph, counting.system(), cluster);
  TROUPE_TRY(CompiledStep step, session.try_compile({}, {last}));
  for (int i = 0; i < 10; ++i) TROUPE_TRY(step.try_run());
  std::uint64_t before = counting.messages();
  for (int i = 0; i < kSteps; ++i) TROUPE_TRY(step.try_run());
  double each = double(counting.messages() - before) / kSteps;
  TROUPE_TRY(session.try_close());
  return BenchRow{family + ".messages", std::round(each * 10) / 10, "messages"};
}

Expected<std::vector<BenchRow>> measure(const std::string& family, Cluster cluster,
                                        const BenchOptions& options, PeerRounds peers) {
  Graph graph;
  Op last = null_chain(graph);
  Session session(graph, std::move(cluster));
  TROUPE_TRY(CompiledStep step, session.try_compile({}, {last}));
  for (int i = 0; i < kStepsPerRound / 10; ++i) TROUPE_TRY(timed_run(step));

  std::vector<double> p50, p99, cold;
  for (int round = 0; round < options.rounds; ++round) {
    TROUPE_TRY(const std::vector<double> steps, timed_round(step));
    p50.push_back(percentile(steps, 0.50));
    p99.push_back(percentile(steps, 0.99));
    TROUPE_TRY(peers.take(kPeersSeconds));
  }
  if (wanted(options, family + ".cold_p50")) {
    for (int i = 0; i < options.rounds * kColdStepsPerRound; ++i) {
      std::this_thread::sleep_for(kPause);
      TROUPE_TRY(double us, timed_run(step));
      cold.push_back(us);
    }
  }
  TROUPE_TRY(session.try_close());
  std::vector<BenchRow> rows = {{family + ".p50", 0, "us"}, {family + ".p99", 0, "us"}};
  peers.compare(rows[0], p50, [](const PeerScript::Round& r, double) { return 1e3 * r.ms; });
  peers.compare(rows[1], p99, [](const PeerScript::Round& r, double) { return 1e3 * r.p99_ms; });
  if (!cold.empty()) rows.push_back({family + ".cold_p50", median(cold), "us"});
  return rows;
}

// A step that takes an element out of a queue of so many and puts one in.
Expected<BenchRow> through_queue(const std::string& name, std::int64_t elements, int rounds) {
  Graph graph;
  const Output queue =
      fifo_queue(graph, {DType::i64}, {.shapes = {Shape{}}, .capacity = elements + 1});
  const Output all = placeholder<std::int64_t>(graph, {elements});
  const Op fill = enqueue_many(queue, {all});
  const Output first = dequeue(queue, {DType::i64}, {.shapes = {Shape{}}})[0];
  const Op put = enqueue(queue, {first});
  Session session(graph, {});
  TROUPE_TRY(CompiledStep begin, session.try_compile({}, {fill}, {all}));
  TROUPE_TRY(const Tensor numbers, Tensor::make(DType::i64, Shape{elements}));
  TROUPE_TRY(begin.try_run({numbers}));
  TROUPE_TRY(CompiledStep step, session.try_compile({first}, {put}));
  std::vector<double> p50;
  for (int round = 0; round < rounds; ++round) {
    TROUPE_TRY(const std::vector<double> steps, timed_round(step));
    p50.push_back(percentile(steps, 0.50));
  }
  TROUPE_TRY(session.try_close());
  return BenchRow{name, median(p50), "us"};
}

// The median of the rounds' means: what happens now and then counts, too.
Expected<double> mean_of_rounds(const CompiledStep& step, int rounds) {
  std::vector<double> means;
  for (int round = 0; round < rounds; ++round) {
    TROUPE_TRY(const std::vector<double> steps, timed_round(step));
    means.push_back(std::accumulate(steps.begin(), steps.end(), 0.0) / double(steps.size()));
  }
  return median(means);
}

// A step that takes an element out of one of so many queues and puts it back.
Expected<BenchRow> one_queue_of(const std::string& name, int queues, int rounds) {
  Graph graph;
  std::vector<Op> fills;
  Output mine;
  for (int q = 0; q < queues; ++q) {
    const Output queue = fifo_queue(graph, {DType::i64}, {.shapes = {Shape{}}, .capacity = 2});
    if (q == 0) mine = queue;
    fills.push_back(enqueue(queue, {constant(graph, std::int64_t{1})}));
  }
  const Output first = dequeue(mine, {DType::i64}, {.shapes = {Shape{}}})[0];
  const Op put = enqueue(mine, {first});
  Session session(graph, {});
  TROUPE_TRY(CompiledStep begin, session.try_compile({}, fills));
  TROUPE_TRY(begin.try_run());
  TROUPE_TRY(CompiledStep step, session.try_compile({first}, {put}));
  TROUPE_TRY(const double mean, mean_of_rounds(step, rounds));
  TROUPE_TRY(session.try_close());
  return BenchRow{name, mean, "us"};
}

// A step, which commits or has nothing to, beside so many runs that wait for an empty queue, as
// those of a service do.
Expected<BenchRow> beside_waiting(const std::string& name, bool commits, int runs, int rounds) {
  Graph graph;
  const Output queue = fifo_queue(graph, {DType::i64}, {.shapes = {Shape{}}, .capacity = 1});
  const Output first = dequeue(queue, {DType::i64}, {.shapes = {Shape{}}})[0];
  const Op last =
      commits ? assign_add(variable(graph, "count", 0.f), constant(graph, 1.f)) : null_chain(graph);
  Session session(graph, {});
  TROUPE_TRY(session.try_init());
  TROUPE_TRY(CompiledStep wait, session.try_compile({first}));
  TROUPE_TRY(CompiledStep step, session.try_compile({}, {last}));
  std::vector<PendingRun> waiting;
  for (int i = 0; i < runs; ++i) waiting.push_back(wait.start({}));
  TROUPE_TRY(timed_round(step));  // meanwhile they come to wait
  TROUPE_TRY(const double mean, mean_of_rounds(step, rounds));
  TROUPE_TRY(session.try_close());
  return BenchRow{name, mean, "us"};
}

}  // namespace

Expected<std::vector<BenchRow>> bench_step(const BenchOptions& options) {
  Cluster two_process;
  two_process.workers = 1;
  const std::pair<std::string, Cluster> families[] = {{"step.local", {}},
                                                      {"step.two_process", two_process}};
  std::optional<TensorflowPeer> tensorflow;
  if (options.beside("tensorflow")) {
    TROUPE_TRY(tensorflow, TensorflowPeer::find());
  }
  std::vector<BenchRow> rows;
  for (const auto& [family, cluster] : families) {
    bool any = false;
    for (const char* figure : {".p50", ".p99", ".cold_p50"})
      any |= wanted(options, family + figure);
    if (any) {
      PeerRounds peers;
      if (tensorflow && family == "step.local") {
        TROUPE_TRY(auto steps, tensorflow->step("null", 1));
        peers = PeerRounds(std::move(steps));
      }
      TROUPE_TRY(auto measured, measure(family, cluster, options, std::move(peers)));
      for (BenchRow& row : measured)
        if (wanted(options, row.name)) rows.push_back(std::move(row));
    }
    if (wanted(options, family + ".messages")) {
      TROUPE_TRY(BenchRow row, count_messages(family, cluster));
      rows.push_back(std::move(row));
    }
  }
  for (const std::int64_t elements : {32, 32'768}) {
    const std::string name = fmt::format("step.queue.{}", elements);
    if (!wanted(options, name)) continue;
    TROUPE_TRY(BenchRow row, through_queue(name, elements, options.rounds));
    rows.push_back(std::move(row));
  }
  for (const int queues : {32, 16'384}) {
    const std::string name = fmt::format("step.queues.{}", queues);
    if (!wanted(options, name)) continue;
    TROUPE_TRY(BenchRow row, one_queue_of(name, queues, options.rounds));
    rows.push_back(std::move(row));
  }
  for (const bool commits : {false, true})
    for (const int runs : {10, 1'000, 4'000}) {
      const std::string name = fmt::format("step.waiting{}.{}", commits ? ".commit" : "", runs);
      if (!wanted(options, name)) continue;
      TROUPE_TRY(BenchRow row, beside_waiting(name, commits, runs, options.rounds));
      rows.push_back(std::move(row));
    }
  return rows;
}

}  // namespace troupe
