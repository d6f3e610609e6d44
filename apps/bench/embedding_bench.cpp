#include <fmt/format.h>

#include <iterator>
#include <random>

#include "apps/bench/peer_rounds.hpp"
#include "apps/bench/rows.hpp"
#include "apps/bench/torch_peer.hpp"
#include "apps/troupe.hpp"

namespace troupe {
namespace {

// As in torch_peer.py. A step takes the next of so many batches of ids, so that it finds its rows
// where the table has them, not where the last step left them.
constexpr std::int64_t kColumns = 128, kIds = 1024;
constexpr int kBatches = 64;
constexpr int kStepsFirst = 2 * kBatches;  // steps before the clock starts
constexpr double kRoundSeconds = 0.6;

// A step of gradient descent over two embeddings.
struct EmbeddingStep {
  Graph graph{1};
  Output first, second, loss;
  Op train;
  std::vector<std::vector<Tensor>> batches;

  explicit EmbeddingStep(std::int64_t rows) {
    const auto table = [&](const char* name) {
      return variable(graph, name,
                      random_uniform(graph, {rows, kColumns}, {.low = -0.1f, .high = 0.1f}));
    };
    const Variable a = table("a"), b = table("b");
    first = placeholder<std::int64_t>(graph, {kIds});
    second = placeholder<std::int64_t>(graph, {kIds});
    loss = mean(square(sum(gather(a, first) * gather(b, second), {.axes = {1}})));
    train = optim::Sgd{.lr = 0.01}.minimize(loss);
    std::mt19937_64 random(17);
    std::uniform_int_distribution<std::int64_t> any(0, rows - 1);
    for (int i = 0; i < kBatches; ++i) {
      std::vector<Tensor> ids;
      for (int side = 0; side < 2; ++side) {
        ids.push_back(value_or_throw(Tensor::make(DType::i64, Shape{kIds})));
        for (std::int64_t k = 0; k < kIds; ++k)
          ids.back().mutable_data<std::int64_t>()[k] = any(random);
      }
      batches.push_back(std::move(ids));
    }
  }
};

Expected<BenchRow> time_embedding(const std::string& name, std::int64_t rows, int threads,
                                  const BenchOptions& options, PeerRounds peers) {
  EmbeddingStep step(rows);
  Cluster cluster = options.cluster;
  cluster.threads = threads;
  Session session(step.graph, cluster);
  TROUPE_TRY(session.try_init());
  TROUPE_TRY(CompiledStep compiled,
             session.try_compile({step.loss}, {step.train}, {step.first, step.second}));
  std::size_t next = 0;
  const auto run = [&] {
    return compiled.try_run(step.batches[next++ % step.batches.size()]).status();
  };
  TROUPE_TRY(BenchRow row,
             time_in_turns(name, options.rounds, {kRoundSeconds, 9, kStepsFirst}, peers, run));
  TROUPE_TRY(session.try_close());
  return row;
}

}  // namespace

Expected<std::vector<BenchRow>> bench_embedding(const BenchOptions& options) {
  std::vector<TorchPeer> torch;
  if (options.beside("torch")) {
    TROUPE_TRY(torch, TorchPeer::find());
  }
  std::vector<BenchRow> rows;
  for (const std::int64_t table : {1'000, 100'000, 1'000'000})
    for (const int threads : options.threads) {
      const std::string name = fmt::format("embedding.{}.t{}", table, threads);
      if (!wanted(options, name)) continue;
      std::vector<PeerStep> steps;
      for (const TorchPeer& peer : torch) {
        TROUPE_TRY(auto found, peer.step(fmt::format("embedding_{}", table), threads));
        std::move(found.begin(), found.end(), std::back_inserter(steps));
      }
      TROUPE_TRY(BenchRow row,
                 time_embedding(name, table, threads, options, PeerRounds(std::move(steps))));
      rows.push_back(std::move(row));
    }
  return rows;
}

}  // namespace troupe
