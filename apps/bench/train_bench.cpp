#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <iterator>
#include <optional>

#include "apps/bench/peer_rounds.hpp"
#include "apps/bench/rows.hpp"
#include "apps/bench/tensorflow_peer.hpp"
#include "apps/bench/torch_peer.hpp"
#include "apps/bench/train_networks.hpp"
#include "apps/compile_here.hpp"
#include "graph/passes/make_plan.hpp"
#include "serialization/digest.hpp"

namespace troupe {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int kWarm = 20;  // steps before the clock starts; the digest is of these
constexpr double kSecondsPerRound = 0.6;

Expected<std::string> digest(TrainStep& step, Session& session) {
  TROUPE_TRY(auto all, session.try_variables());
  std::vector<std::pair<std::string, Tensor>> parameters;
  for (const Variable& v : trainable_variables(step.graph))
    for (auto& entry : all)
      if (entry.first == v.name()) parameters.push_back(entry);
  return params_sha256(std::move(parameters));
}

// The median of the steps of one round.
Expected<double> time_round(const CompiledStep& compiled, const TrainStep& step) {
  std::vector<double> times;
  const Clock::time_point end = Clock::now() + std::chrono::duration_cast<Clock::duration>(
                                                   std::chrono::duration<double>(kSecondsPerRound));
  while (Clock::now() < end || times.size() < 9) {
    const auto begin = Clock::now();
    TROUPE_TRY(compiled.try_run(step.feeds));
    times.push_back(std::chrono::duration<double, std::milli>(Clock::now() - begin).count());
  }
  return median(std::move(times));
}

Expected<BenchRow> time_step(const TrainNetwork& network, int threads, const BenchOptions& options,
                             PeerRounds peers) {
  TROUPE_TRY(auto step, make_train_step(network));
  Cluster cluster = options.cluster;
  cluster.threads = threads;
  Session session(step->graph, cluster);
  TROUPE_TRY(session.try_init());
  TROUPE_TRY(CompiledStep compiled,
             session.try_compile({step->loss}, {step->train}, {step->x, step->y}));
  for (int i = 0; i < kWarm; ++i) TROUPE_TRY(compiled.try_run(step->feeds));
  BenchRow row{fmt::format("train.{}.t{}", network.name, threads), 0, "ms"};
  TROUPE_TRY(row.details["params_sha256"], digest(*step, session));

  std::vector<double> ours;
  for (int round = 0; round < options.rounds; ++round) {
    TROUPE_TRY(const double ms, time_round(compiled, *step));
    ours.push_back(ms);
    TROUPE_TRY(peers.take(kSecondsPerRound));
  }
  peers.compare(row, ours, [](const PeerScript::Round& round, double) { return round.ms; });
  TROUPE_TRY(session.try_close());
  return row;
}

CompileRequest request_of(const TrainStep& step) {
  auto port = [](Output o) {
    return PortName{o.graph().node(o.node()).name, int(o.port().index), false};
  };
  CompileRequest request;
  request.feeds = {port(step.x), port(step.y)};
  request.fetches = {port(step.loss)};
  request.targets = {step.train.name()};
  return request;
}

// What a step of lenet takes beyond what stays between steps (parameters, velocities), at most over
// some steps, beside the bound of its plan.
Expected<BenchRow> peak_bytes() {
  TROUPE_TRY(auto step, make_train_step(*find_train_network("lenet")));
  TROUPE_TRY(CompiledGraph plan,
             compile_here(step->graph, request_of(*step), {"/job:worker/task:0/cpu:0"}));
  Cluster cluster;
  cluster.threads = 1;
  Session session(step->graph, cluster);
  TROUPE_TRY(session.try_init());
  TROUPE_TRY(CompiledStep compiled,
             session.try_compile({step->loss}, {step->train}, {step->x, step->y}));
  for (int i = 0; i < 3; ++i) TROUPE_TRY(compiled.try_run(step->feeds));
  double early = 0, peak = 0, held_early = 0, held_late = 0;
  for (int i = 0; i < kWarm; ++i) {
    double before = double(session.memory(true).front().in_use);
    TROUPE_TRY(compiled.try_run(step->feeds));
    double used = double(session.memory().front().peak) - before;
    if (i == 0) early = used, held_early = before;
    peak = std::max(peak, used);
    held_late = before;
  }
  TROUPE_TRY(session.try_close());
  BenchRow row{"train.lenet.peak_bytes", peak, "bytes"};
  row.peer = "liveness bound";
  row.peer_value = double(liveness_bound_bytes(plan.plans[0]));
  row.ratio = row.value / row.peer_value;
  // Growth would show in either: in what a step takes, or in what is still held when it begins.
  row.details["step_4"] = fmt::format("{:.0f}", early);
  row.details["held_before_step_4"] = fmt::format("{:.0f}", held_early);
  row.details["held_before_last_step"] = fmt::format("{:.0f}", held_late);
  return row;
}

}  // namespace

Expected<std::vector<BenchRow>> bench_train(const BenchOptions& options) {
  std::vector<TorchPeer> torch;
  std::optional<TensorflowPeer> tensorflow;
  if (options.beside("torch")) {
    TROUPE_TRY(torch, TorchPeer::find());
  }
  if (options.beside("tensorflow")) {
    TROUPE_TRY(tensorflow, TensorflowPeer::find());
  }
  auto peers_of = [&](const TrainNetwork& network, int threads) -> Expected<std::vector<PeerStep>> {
    std::vector<PeerStep> peers;
    if (!network.of_peers) return peers;
    for (const TorchPeer& peer : torch) {
      TROUPE_TRY(auto steps, peer.step(network.name, threads));
      std::move(steps.begin(), steps.end(), std::back_inserter(peers));
    }
    if (tensorflow) {
      TROUPE_TRY(auto steps, tensorflow->step(network.name, threads));
      std::move(steps.begin(), steps.end(), std::back_inserter(peers));
    }
    return peers;
  };
  std::vector<BenchRow> rows;
  for (const TrainNetwork& network : train_networks()) {
    for (int threads : options.threads) {
      if (!wanted(options, fmt::format("train.{}.t{}", network.name, threads))) continue;
      TROUPE_TRY(auto peers, peers_of(network, threads));
      TROUPE_TRY(BenchRow row, time_step(network, threads, options, PeerRounds(std::move(peers))));
      rows.push_back(std::move(row));
    }
  }
  if (wanted(options, "train.lenet.peak_bytes")) {
    TROUPE_TRY(BenchRow row, peak_bytes());
    rows.push_back(std::move(row));
  }
  return rows;
}

}  // namespace troupe
