#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "apps/bench/channel_bench.hpp"
#include "apps/bench/executor_bench.hpp"
#include "apps/bench/function_bench.hpp"
#include "apps/bench/kernel_bench.hpp"
#include "apps/bench/loop_bench.hpp"
#include "apps/bench/peer_rounds.hpp"
#include "apps/bench/rows.hpp"
#include "apps/bench/tensorflow_peer.hpp"
#include "apps/bench/torch_peer.hpp"
#include "apps/commands/cli.hpp"
#include "apps/commands/print.hpp"
#include "core/name.hpp"
#include "devices/cpu/cpu_device.hpp"

namespace troupe {
namespace {

using nlohmann::json;

Expected<std::vector<BenchRow>> channel_rows(const BenchOptions& options) {
  ChannelBench bench;
  bench.rounds = options.rounds;
  bench.only = options.only;
  TROUPE_TRY(auto measured, bench_channel(bench));
  std::vector<BenchRow> rows;
  for (const ChannelRow& row : measured)
    rows.push_back({row.name, row.value, row.unit, row.peer, row.peer_value, row.ratio});
  return rows;
}

using OnOneDevice = Expected<std::vector<ExecutorRow>> (*)(Device&, const ExecutorBench&);

template <OnOneDevice measure>
Expected<std::vector<BenchRow>> on_one_device(const BenchOptions& options) {
  ExecutorBench bench;
  bench.rounds = options.rounds;
  bench.only = options.only;
  auto device = make_inline_device(DeviceName{"worker", 0, "CPU", 0});
  TROUPE_TRY(auto measured, measure(*device, bench));
  std::vector<BenchRow> rows;
  for (const ExecutorRow& row : measured) rows.push_back({row.name, row.value, row.unit});
  return rows;
}

using Rows = Expected<std::vector<BenchRow>> (*)(const BenchOptions&);

// A loop: rounds of ours and of each of TensorFlow's modes in turn.
Status in_turns(const TensorflowPeer& peer, BenchOptions options, Rows measure, bool two_devices,
                BenchRow& row) {
  constexpr std::string_view kLoops = "executor.loop.";
  TROUPE_TRY(auto loops, peer.loop(std::string_view(row.name).substr(kLoops.size()), two_devices));
  PeerRounds peers(std::move(loops));
  const int rounds = std::exchange(options.rounds, 1);
  options.only = row.name;
  std::vector<double> ours;
  for (int round = 0; round < rounds; ++round) {
    TROUPE_TRY(const auto measured, measure(options));
    for (const BenchRow& mine : measured)
      if (mine.name == row.name) ours.push_back(mine.value);
    TROUPE_TRY(peers.take(0.2));
  }
  peers.compare(row, ours,
                [](const PeerScript::Round& r, double units) { return 1e6 * r.ms / units; });
  return ok_status();
}

Expected<std::vector<BenchRow>> executor_rows(const BenchOptions& options) {
  std::optional<TensorflowPeer> peer;
  BenchOptions first = options;
  if (options.beside("tensorflow")) {
    TROUPE_TRY(peer, TensorflowPeer::find());
    first.rounds = 1;  // which tells what loops there are; those that count come in turns
  }
  TROUPE_TRY(auto rows, on_one_device<bench_executor>(options));
  for (Rows measure : {Rows{on_one_device<bench_loops>}, Rows{bench_spread_loops}}) {
    TROUPE_TRY(auto loops, measure(first));
    for (BenchRow& row : loops) {
      if (peer) TROUPE_TRY(in_turns(*peer, options, measure, measure == bench_spread_loops, row));
      rows.push_back(std::move(row));
    }
  }
  TROUPE_TRY(auto ends, bench_loop_ends(options));
  rows.insert(rows.end(), ends.begin(), ends.end());
  return rows;
}

// One kernel. If PyTorch has it, too: a round of ours and of each PyTorch in turn.
Expected<BenchRow> time_kernel(const KernelRow& kernel, KernelBench bench, PeerRounds& torch) {
  PeerRounds nobody;
  PeerRounds& peers = kernel.peer.empty() ? nobody : torch;
  peers.begin(kernel.peer);
  bench.only = kernel.name;
  TROUPE_TRY(const auto measured, bench_kernels(bench, [&] { return peers.take(bench.seconds); }));
  BenchRow row{kernel.name, measured[0].value, kernel.unit};
  peers.compare(row, measured[0].rounds, [](const PeerScript::Round& r, double) { return r.ms; });
  return row;
}

Expected<std::vector<BenchRow>> kernel_group(const BenchOptions& options) {
  std::vector<TorchPeer> torch;
  if (options.beside("torch")) {
    TROUPE_TRY(torch, TorchPeer::find());
  }
  std::vector<BenchRow> rows;
  for (int threads : {1, 2}) {
    KernelBench bench;
    bench.threads = threads;
    bench.rounds = options.rounds;
    bench.only = options.only;
    std::vector<PeerStep> steps;
    for (const TorchPeer& peer : torch) {
      TROUPE_TRY(auto found, peer.step("kernels", threads));
      std::move(found.begin(), found.end(), std::back_inserter(steps));
    }
    PeerRounds peers(std::move(steps));
    for (const KernelRow& kernel : kernel_rows(bench)) {
      TROUPE_TRY(BenchRow row, time_kernel(kernel, bench, peers));
      rows.push_back(std::move(row));
    }
    TROUPE_TRY(auto functions, bench_functions(options, threads, peers));
    std::move(functions.begin(), functions.end(), std::back_inserter(rows));
  }
  return rows;
}

struct Group {
  std::string_view name;
  Expected<std::vector<BenchRow>> (*run)(const BenchOptions&);
  bool by_name = false;  // left out unless it is named
};
// The channel's comes first whatever was asked: it forks, and after it there are threads.
constexpr Group kGroups[] = {
    {"channel", channel_rows},   {"async", bench_async, true}, {"embedding", bench_embedding, true},
    {"executor", executor_rows}, {"input", bench_input, true}, {"kernels", kernel_group},
    {"gpu", bench_gpu, true},    {"soak", bench_soak, true},   {"step", bench_step},
    {"train", bench_train}};

Status check_groups(const std::vector<std::string>& wanted) {
  std::vector<std::string> known;
  for (const Group& group : kGroups) known.emplace_back(group.name);
  for (const std::string& name : wanted) {
    if (std::find(known.begin(), known.end(), name) != known.end()) continue;
    std::string message = "there is no group '" + name + "' of benchmarks; known are";
    for (const std::string& group : known) message += " " + group;
    auto near = near_names(name, known, 1);
    if (!near.empty()) message += "; did you mean " + near.front() + "?";
    return invalid_argument(message);
  }
  return ok_status();
}

bool chosen(const BenchOptions& options, std::string_view group, bool by_name = false) {
  return (options.groups.empty() && !by_name) ||
         std::find(options.groups.begin(), options.groups.end(), group) != options.groups.end();
}

// Before minutes are spent on the other groups.
Status check_peer(const BenchOptions& options) {
  const bool train = chosen(options, "train");
  const bool input = chosen(options, "input", true);
  const bool others = chosen(options, "step") || chosen(options, "executor") || input;
  if (options.beside("torch") && !train && !chosen(options, "kernels") &&
      !chosen(options, "embedding", true) && !chosen(options, "gpu", true) && !input)
    return invalid_argument(
        "--peer torch is of the groups embedding, gpu, input, kernels and train, of which none was "
        "chosen");
  if (options.beside("torch")) TROUPE_TRY(TorchPeer::find().status());
  if (options.beside("tensorflow") && !train && !others)
    return invalid_argument(
        "--peer tensorflow is of the groups executor, input, step and train, of which none was "
        "chosen");
  if (options.beside("tensorflow")) return TensorflowPeer::find().status();
  return ok_status();
}

json as_json(const BenchRow& row) {
  json out = {{"name", row.name}, {"value", row.value}, {"unit", row.unit}, {"peer", row.peer}};
  // A comparison that was not made has no figure, rather than 0.
  out["peer_value"] = row.peer.empty() ? json() : json(row.peer_value);
  out["ratio"] = row.peer.empty() ? json() : json(row.ratio);
  for (const auto& [key, value] : row.details) out[key] = value;
  if (!row.label.empty()) out["label"] = row.label;
  return out;
}

void print_table(const std::vector<BenchRow>& rows) {
  std::size_t width = 4;
  for (const BenchRow& row : rows) width = std::max(width, row.name.size());
  print_out("{:<{}}  {:>12}  {:<8}  {:>12}  {:>6}  {}\n", "name", width, "value", "unit",
            "peer value", "ratio", "peer");
  for (const BenchRow& row : rows) {
    print_out("{:<{}}  {:>12.4g}  {:<8}", row.name, width, row.value, row.unit);
    if (!row.peer.empty())
      print_out("  {:>12.4g}  {:>6.3f}  {}", row.peer_value, row.ratio, row.peer);
    if (!row.label.empty()) print_out("  ({})", row.label);
    print_out("\n");
  }
}

int run_bench(const BenchOptions& options, const Printing& printing) {
  if (Status status = check_groups(options.groups); !status.ok())
    return report_usage(status, printing);
  if (Status status = check_peer(options); !status.ok()) {
    int code = report_error(status, printing);
    return status.code() == Code::invalid_argument ? kUsage : code;
  }
  std::vector<BenchRow> rows;
  try {
    for (const Group& group : kGroups) {
      if (!chosen(options, group.name, group.by_name)) continue;
      if (!printing.quiet) print_err("measuring {}\n", group.name);
      auto measured = group.run(options);
      if (!measured.ok()) return report_error(measured.status(), printing);
      for (BenchRow& row : *measured) rows.push_back(std::move(row));
    }
  } catch (const Error& error) {  // graphs and sessions: the client's edge
    return report_error(error.status(), printing);
  }
  if (rows.empty())
    return report_error(not_found("no row's name contains '" + options.only + "'"), printing);
  if (!printing.json) return print_table(rows), 0;
  json all = json::array();
  for (const BenchRow& row : rows) all.push_back(as_json(row));
  print_json(all);
  return 0;
}

void add_bench(CommandLine& line) {
  auto options = std::make_shared<BenchOptions>();
  auto cluster = std::make_shared<std::string>("local");
  Command c = line.command("bench", "Measure, e.g. troupe bench step --output json");
  c.option(
      "groups", options->groups,
      "executor, step, channel, kernels, train (default: these five), async, embedding, input, "
      "soak, gpu");
  c.option("--only", options->only, "run only rows whose name contains this");
  c.option("--peer", options->peers, "also run torch, tensorflow or both, in turns with our rows")
      .one_of({"torch", "tensorflow"})
      .list();
  c.option("--rounds", options->rounds, "number of rounds; figures are their medians")
      .within(1, 1000);
  c.option("--threads", options->threads,
           "compute threads; one row for each number given (train, embedding and input only)")
      .within(1, 1024);
  c.option("--cluster", *cluster,
           "local: one process; local:W: W worker processes (train and embedding only)");
  c.runs([options, cluster, &line] {
    auto workers = Cluster::parse_workers(*cluster);
    if (!workers.ok()) return report_usage(workers.status(), line.printing());
    options->cluster.workers = *workers;
    return run_bench(*options, line.printing());
  });
}

}  // namespace
}  // namespace troupe

int main(int argc, char** argv) { return troupe::run_cli(argc, argv, troupe::add_bench); }
