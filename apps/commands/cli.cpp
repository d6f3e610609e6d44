#include "troupe/apps/commands/cli.hpp"

#include <fmt/format.h>
#include <CLI/CLI.hpp>
#include <cerrno>
#include <charconv>
#include <cstdio>
#include <cstring>

#include "troupe/actors/runtime/worker_process.hpp"
#include "troupe/apps/commands/commands.hpp"
#include "troupe/apps/models.hpp"
#include "troupe/core/log.hpp"
#include "troupe/core/name.hpp"

namespace troupe {
namespace {

constexpr int kUsage = 2;

// "200" steps or "30s".
std::string parse_every(const std::string& text, TrainOptions& options) {
  std::string digits = text;
  bool seconds = !digits.empty() && digits.back() == 's';
  if (seconds) digits.pop_back();
  std::int64_t value = 0;
  auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  if (error != std::errc{} || end != digits.data() + digits.size() || value < 1)
    return "a number of steps, or seconds like 30s";
  if (seconds)
    options.checkpoint_seconds = double(value);
  else
    options.checkpoint_steps = value;
  return {};
}

// What decides speed and bits, too.
std::string version_text() {
  NumericProfile profile = numeric_profile();
  return fmt::format("troupe {}\n{} build, kernels for {}", TROUPE_VERSION, TROUPE_BUILD_TYPE,
                     profile_text(profile));
}

// A number from `low` to `high`, which NaN is not.
CLI::Validator finite(double low, double high) {
  return CLI::Validator(
      [=](std::string& text) {
        double value = 0;
        bool number = CLI::detail::lexical_cast(text, value) && value >= low && value <= high;
        return number ? std::string{}
                      : fmt::format("Value {} not in range {} to {}", text, low, high);
      },
      "NUMBER");
}

// Digits that fit: the library takes -1 for the largest number, and a larger one, too.
CLI::Validator seed_number() {
  return CLI::Validator(
      [](std::string& text) -> std::string {
        std::uint64_t value = 0;
        auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
        if (error == std::errc{} && end == text.data() + text.size()) return {};
        return fmt::format("{} is no number from 0 to 2^64 - 1", text);
      },
      "NUMBER");
}

struct Cli {
  CLI::App app{"Troupe runs machine learning graphs on actors.", "troupe"};
  Printing printing;
  std::string output = "text", log = "warning", every, cluster = "local";
  TrainOptions train;
  BenchOptions bench;
  GraphOptions graph;
  std::string master, listen, secret_file, directory, path;
  std::function<int()> chosen;

  Cli();
  void shared(CLI::App* command);
  void add_train();
  void add_worker();
  void add_checkpoints();
  void add_graph();
  void add_bench();
};

// Options that mean nothing without another one; empty when all is well.
std::string odd_combination(const Cli& cli) {
  const TrainOptions& train = cli.train;
  bool dir = !train.checkpoint_dir.empty(), listen = !train.cluster.listen.empty();
  if (train.resume && !dir) return "--resume wants --checkpoint-dir";
  if (train.other_graph && !train.resume) return "--allow-other-graph wants --resume";
  if (!cli.every.empty() && !dir) return "--checkpoint-every wants --checkpoint-dir";
  if (train.cluster.wait_for > 0 && !listen) return "--wait-for wants --listen HOST:PORT";
  if (listen && train.cluster.wait_for == 0 && train.cluster.workers == 0)
    return "--listen wants --wait-for N";
  return {};
}

void Cli::shared(CLI::App* command) {
  command->add_option("--output", output, "text or json")->check(CLI::IsMember({"text", "json"}));
  command->add_flag("--quiet", printing.quiet, "no progress");
  command->add_option("--log", log, "debug, info, warning, error or off")
      ->check(CLI::IsMember({"debug", "info", "warning", "error", "off"}))
      ->envname("TROUPE_LOG");
}

void Cli::add_train() {
  CLI::App* c = app.add_subcommand("train", "Train a network, e.g. troupe train mnist-conv");
  c->add_option("example", train.example, "mnist-softmax, mnist-mlp or mnist-conv")->required();
  c->add_option("--data", train.data, "folder with MNIST's four IDX files (default: drawn digits)");
  c->add_option("--examples", train.examples, "drawn digits to train on")
      ->check(CLI::Range(1, 10'000'000));
  c->add_option("--epochs", train.epochs, "passes over the data")->check(finite(0, 1e6));
  c->add_option("--steps", train.steps, "training steps")->check(CLI::Range(1, 1'000'000'000));
  c->add_option("--batch", train.batch, "examples of each replica a step")
      ->check(CLI::Range(1, 1'000'000));
  c->add_option("--learning-rate", train.learning_rate, "of SGD with momentum 0.9")
      ->check(finite(0, 1e6));
  c->add_option("--replicas", train.cluster.replicas, "data parallel copies of the step")
      ->check(CLI::Range(1, 1024));
  c->add_option("--cluster", cluster, "local, or local:W for W worker processes");
  c->add_option("--listen", train.cluster.listen, "HOST:PORT to wait at for --wait-for workers");
  c->add_option("--wait-for", train.cluster.wait_for, "workers started elsewhere")
      ->check(CLI::Range(0, 1024));
  c->add_option("--secret-file", secret_file, "16 to 64 bytes shared with those workers");
  c->add_option("--threads", train.cluster.threads, "compute threads of each process (0: all)")
      ->check(CLI::Range(0, 1024));
  c->add_option("--device", train.cluster.devices, "device types of each worker");
  c->add_option("--seed", train.seed, "of everything random")->check(seed_number());
  c->add_option("--checkpoint-dir", train.checkpoint_dir, "where checkpoints go");
  c->add_option("--checkpoint-every", every, "N steps, or Ns seconds");
  c->add_option("--keep", train.keep, "checkpoints to keep")->check(CLI::Range(1, 1000));
  c->add_flag("--resume", train.resume, "go on from the newest checkpoint");
  c->add_flag("--allow-other-graph", train.other_graph,
              "resume although batch, rate or network are not the checkpoint's");
  auto* trace =
      c->add_option("--trace", train.trace, "file for what all processes do, for ui.perfetto.dev");
  c->add_option("--trace-steps", train.trace_steps, "steps in it, once the first 3 are over")
      ->check(CLI::Range(1, 1'000'000))
      ->needs(trace);
  shared(c);
  c->callback([this] {
    chosen = [this] {
      auto workers = Cluster::parse_workers(cluster);
      if (!workers.ok()) return report_error(workers.status(), printing), kUsage;
      train.cluster.workers = *workers;
      auto secret = read_secret(secret_file);
      if (!secret.ok()) return report_error(secret.status(), printing), kUsage;
      train.cluster.secret = *secret;
      if (std::string odd = odd_combination(*this); !odd.empty())
        return report_error(invalid_argument(odd), printing), kUsage;
      if (!every.empty())
        if (std::string wanted = parse_every(every, train); !wanted.empty())
          return report_error(invalid_argument("--checkpoint-every wants " + wanted), printing),
                 kUsage;
      if (auto names = model_names();
          std::find(names.begin(), names.end(), train.example) == names.end()) {
        Graph scratch;
        return report_error(make_model(train.example, scratch).status(), printing), kUsage;
      }
      return train_command(train, printing);
    };
  });
  CLI::App* demo = app.add_subcommand("demo", "Train two networks on drawn digits and compare");
  shared(demo);
  demo->callback([this] { chosen = [this] { return demo_command(printing); }; });
}

void Cli::add_worker() {
  CLI::App* c = app.add_subcommand("worker", "Join a master: troupe worker --master HOST:PORT");
  c->add_option("--master", master, "HOST:PORT of the job")->required();
  c->add_option("--listen", listen, "HOST:PORT where other workers reach this one");
  c->add_option("--secret-file", secret_file, "16 to 64 bytes shared with the master");
  shared(c);
  c->callback([this] { chosen = [this] { return worker_command(master, listen, secret_file); }; });
}

void Cli::add_checkpoints() {
  CLI::App* c = app.add_subcommand("ckpt", "Look at checkpoints");
  c->require_subcommand(1);
  CLI::App* ls = c->add_subcommand("ls", "List and verify, e.g. troupe ckpt ls DIR");
  ls->add_option("directory", directory)->required();
  shared(ls);
  ls->callback(
      [this] { chosen = [this] { return checkpoint_list_command(directory, printing); }; });
  CLI::App* verify = c->add_subcommand("verify", "Check every byte of one");
  verify->add_option("path", path)->required();
  shared(verify);
  verify->callback(
      [this] { chosen = [this] { return checkpoint_verify_command(path, printing); }; });
}

void Cli::add_graph() {
  CLI::App* c = app.add_subcommand("graph", "Print a training step after a stage of compiling");
  c->add_option("example", graph.example, "one of the examples of train");
  c->add_option("--stage", graph.stage, "a stage, or plan, or stages for their names");
  c->add_option("--format", graph.format, "text or dot")->check(CLI::IsMember({"text", "dot"}));
  c->add_option("--batch", graph.batch)->check(CLI::Range(1, 1'000'000));
  c->add_option("--replicas", graph.replicas)->check(CLI::Range(1, 1024));
  c->add_option("--device", graph.devices, "full device names");
  c->add_flag("--explain", graph.explain, "what each pass did");
  shared(c);
  c->callback([this] { chosen = [this] { return graph_command(graph, printing); }; });
}

void Cli::add_bench() {
  CLI::App* c = app.add_subcommand("bench", "Measure, e.g. troupe bench step --output json");
  c->add_option("groups", bench.groups,
                "executor, step, channel, kernels, train (default: these), soak");
  c->add_option("--only", bench.only, "rows whose name contains this");
  c->add_option("--peer", bench.peer, "torch: run PyTorch in the same call")
      ->check(CLI::IsMember({"torch"}));
  c->add_option("--rounds", bench.rounds, "medians of so many")->check(CLI::Range(1, 1000));
  c->add_option("--threads", bench.threads, "train: compute threads, a row for each number")
      ->check(CLI::Range(1, 1024));
  c->add_option("--cluster", cluster, "train: local, or local:W for W worker processes");
  shared(c);
  c->callback([this] {
    chosen = [this] {
      auto workers = Cluster::parse_workers(cluster);
      if (!workers.ok()) return report_error(workers.status(), printing), kUsage;
      bench.cluster.workers = *workers;
      return bench_command(bench, printing);
    };
  });
}

Cli::Cli() {
  app.require_subcommand(1);
  app.set_version_flag("--version", version_text);
  add_train();
  add_worker();
  add_checkpoints();
  add_graph();
  add_bench();
}

LogLevel level_of(const std::string& name) {
  if (name == "debug") return LogLevel::debug;
  if (name == "info") return LogLevel::info;
  if (name == "error") return LogLevel::error;
  return name == "off" ? LogLevel::off : LogLevel::warning;
}

void suggest(const CLI::App& app, int argc, char** argv) {
  if (argc < 2 || argv[1][0] == '-') return;
  std::vector<std::string> names;
  for (const CLI::App* c : app.get_subcommands({})) names.push_back(c->get_name());
  if (std::find(names.begin(), names.end(), argv[1]) != names.end()) return;
  auto near = near_names(argv[1], names, 1);
  if (!near.empty()) fmt::print(stderr, "did you mean 'troupe {}'?\n", near.front());
}

}  // namespace

int exit_code(const Status& status) {
  switch (status.code()) {
    case Code::ok:
      return 0;
    case Code::unavailable:
      return 75;
    case Code::internal:
      return 70;
    default:
      return 1;
  }
}

int run_cli(int argc, char** argv) {
  Cli cli;
  try {
    cli.app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    int code = cli.app.exit(error);
    if (code != 0) suggest(cli.app, argc, argv);
    return code == 0 ? 0 : kUsage;
  }
  cli.printing.json = cli.output == "json";
  set_log_level(level_of(cli.log));
  int code = cli.chosen();
  if (std::fflush(stdout) == 0 && std::ferror(stdout) == 0) return code;
  fmt::print(stderr, "error: cannot write the result: {}\n", std::strerror(errno));
  return code == 0 ? 1 : code;
}

}  // namespace troupe
