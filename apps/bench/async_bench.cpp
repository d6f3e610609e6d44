// Training steps at once: of two clients on two workers, and pipelined over two devices.
#include <fmt/format.h>

#include <atomic>
#include <chrono>
#include <deque>
#include <thread>
#include <vector>

#include "apps/bench/rows.hpp"
#include "apps/troupe.hpp"
#include "core/function_ref.hpp"

namespace troupe {
namespace {

using Clock = std::chrono::steady_clock;

class Round {
 public:
  bool lasts() const { return Clock::now() < begin_ + std::chrono::seconds(1); }
  // Steps a second so far.
  double rate(std::int64_t steps) const {
    return double(steps) / std::chrono::duration<double>(Clock::now() - begin_).count();
  }

 private:
  const Clock::time_point begin_ = Clock::now();
};

constexpr int kStepsBefore = 5;
constexpr int kInFlight = 4;

// A step of a client computes for about 9 ms. Its variables, 0.8 MB, may be in the other's process.
constexpr std::int64_t kBatchOfClient = 2560;
constexpr std::int64_t kIn = 784, kHidden = 256, kOut = 10;

// A network whose variables all clients share: so many layers, and one of the scores.
struct Shared {
  Graph graph{1};
  std::vector<Variable> layers;
  Variable scores;

  explicit Shared(int hidden_layers) {
    const auto weights = [&](const std::string& name, std::int64_t in, std::int64_t out) {
      return variable(graph, name,
                      random_uniform(graph, {in, out}, {.low = -0.05f, .high = 0.05f}));
    };
    for (int i = 0; i < hidden_layers; ++i)
      layers.push_back(weights(fmt::format("layer{}", i), i == 0 ? kIn : kHidden, kHidden));
    scores = weights("scores", kHidden, kOut);
  }
  // A step of gradient descent on a batch of numbers, the layers on one device, the scores and
  // their loss on the other.
  struct Train {
    Output loss;
    Op update;
  };
  Train train(const std::string& one, const std::string& other, std::int64_t batch) {
    Train made;
    const auto on_one = graph.with_device(one);
    Output x = constant(graph, drawn({batch, kIn}));
    for (const Variable& layer : layers) x = relu(mat_mul(x, layer));
    const auto on_other = graph.with_device(other);
    const Output y = constant(graph, drawn({batch, kOut}));
    made.loss = mean(square(mat_mul(x, scores) - y));
    made.update = optim::Sgd{.lr = 0.01}.minimize(made.loss);
    return made;
  }
  static Tensor drawn(const Shape& shape) {
    Tensor t = value_or_throw(Tensor::make(DType::f32, shape));
    for (std::int64_t i = 0; i < t.elements(); ++i)
      t.mutable_data<float>()[i] = float(i * 7919 % 1000) / 500 - 1;
    return t;
  }
};

// Steps a second of `clients` threads, which run a step each.
Expected<double> rate_of(const std::vector<CompiledStep>& steps, std::size_t clients,
                         const RunOptions& options) {
  std::atomic<std::int64_t> done{0};
  std::vector<Status> failed(clients);
  const Round round;
  std::vector<std::thread> threads;
  for (std::size_t c = 0; c < clients; ++c)
    threads.emplace_back([&, c] {
      while (round.lasts() && failed[c].ok()) {
        failed[c] = steps[c].try_run({}, options).status();
        ++done;
      }
    });
  for (std::thread& thread : threads) thread.join();
  for (const Status& status : failed) TROUPE_TRY(status);
  return round.rate(done);
}

// Steps a second of one client with so many under way.
Expected<double> pipelined_rate(const CompiledStep& step, std::size_t in_flight,
                                const RunOptions& options) {
  std::deque<PendingRun> pending;
  std::int64_t done = 0;
  const Round round;
  while (round.lasts() || !pending.empty()) {
    while (round.lasts() && pending.size() < in_flight) pending.push_back(step.start({}, options));
    if (pending.empty()) break;
    TROUPE_TRY(pending.front().try_get());
    pending.pop_front();
    ++done;
  }
  return round.rate(done);
}

using Rate = FunctionRef<Expected<double>(bool together)>;

// Rounds of both in turns; the ratio is the median of those of the rounds.
Expected<BenchRow> compare(std::string name, const BenchOptions& options, std::string alone,
                           const Staleness& staleness, Rate rate) {
  std::vector<double> ours, theirs;
  for (int round = 0; round < options.rounds; ++round) {
    TROUPE_TRY(const double one, rate(false));
    TROUPE_TRY(const double all, rate(true));
    theirs.push_back(one);
    ours.push_back(all);
  }
  BenchRow row{std::move(name), median(ours), "steps/s"};
  row.peer = std::move(alone);
  row.peer_value = median(theirs);
  row.ratio = median_ratio(ours, theirs);
  row.details["staleness"] =
      fmt::format("{:.2f} on average, {} at most", staleness.mean(), staleness.most());
  return row;
}

Expected<BenchRow> two_clients(const std::string& name, const BenchOptions& options,
                               Commit commit) {
  Shared shared(1);
  std::vector<Shared::Train> made;
  for (const char* task : {"/job:worker/task:0/cpu:0", "/job:worker/task:1/cpu:0"})
    made.push_back(shared.train(task, task, kBatchOfClient));
  Cluster cluster;
  cluster.threads = 1;
  cluster.workers = 2;
  Session session(shared.graph, cluster);
  TROUPE_TRY(session.try_init());
  const auto staleness = std::make_shared<Staleness>();
  const RunOptions run{.commit = commit, .staleness = staleness};
  std::vector<CompiledStep> steps;
  for (const Shared::Train& train : made) {
    TROUPE_TRY(CompiledStep step, session.try_compile({train.loss}, {train.update}));
    for (int i = 0; i < kStepsBefore; ++i) TROUPE_TRY(step.try_run({}, run).status());
    steps.push_back(std::move(step));
  }
  TROUPE_TRY(BenchRow row, compare(name, options, "one client", *staleness, [&](bool together) {
               return rate_of(steps, together ? 2 : 1, run);
             }));
  TROUPE_TRY(session.try_close());
  return row;
}

// Two layers before the scores, so that either device has about as much to do.
Expected<BenchRow> pipelined(const std::string& name, const BenchOptions& options, Commit commit) {
  Shared shared(2);
  const Shared::Train train = shared.train("/fake:0", "/fake:1", 64);
  Cluster cluster;
  cluster.threads = 1;
  cluster.devices = std::vector<std::string>{"CPU", "FAKE", "FAKE"};
  Session session(shared.graph, cluster);
  TROUPE_TRY(session.try_init());
  const auto staleness = std::make_shared<Staleness>();
  const RunOptions run{.commit = commit, .staleness = staleness};
  TROUPE_TRY(CompiledStep step, session.try_compile({train.loss}, {train.update}));
  for (int i = 0; i < kStepsBefore; ++i) TROUPE_TRY(step.try_run({}, run).status());
  TROUPE_TRY(BenchRow row,
             compare(name, options, "one after another", *staleness, [&](bool together) {
               return pipelined_rate(step, together ? kInFlight : 1, run);
             }));
  TROUPE_TRY(session.try_close());
  return row;
}

}  // namespace

Expected<std::vector<BenchRow>> bench_async(const BenchOptions& options) {
  struct Kind {
    const char* name;
    Expected<BenchRow> (*measure)(const std::string&, const BenchOptions&, Commit);
  };
  std::vector<BenchRow> rows;
  for (const Commit commit : {Commit::checked, Commit::immediate})
    for (const Kind& kind : {Kind{"two_clients", two_clients}, Kind{"pipelined", pipelined}}) {
      const std::string name = fmt::format("async.{}.{}", kind.name,
                                           commit == Commit::checked ? "checked" : "immediate");
      if (!wanted(options, name)) continue;
      TROUPE_TRY(BenchRow row, kind.measure(name, options, commit));
      rows.push_back(std::move(row));
    }
  return rows;
}

}  // namespace troupe
