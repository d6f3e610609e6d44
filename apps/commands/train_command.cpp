#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <csignal>
#include <memory>
#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "actors/cluster_words.hpp"
#include "actors/job/job.hpp"
#include "apps/commands/command_line.hpp"
#include "apps/commands/print.hpp"
#include "apps/commands/progress.hpp"
#include "apps/models.hpp"
#include "apps/training.hpp"
#include "core/byte_count.hpp"
#include "core/stop_signal.hpp"

namespace troupe {
namespace {

// While waiting for workers, or at the next step boundary.
bool stop_asked() { return stop_signal() != 0; }

// Null: there is none.
nlohmann::json newest_good(const std::string& checkpoint) {
  return checkpoint.empty() ? nlohmann::json() : nlohmann::json(checkpoint);
}

void add_validation(nlohmann::json& out, const TrainResult& result) {
  if (!result.stopped) out["sample"] = result.sample;
  out["validation_loss"] = nullptr;  // of no test
  if (result.validation_loss == TrainResult::kUntested) return;
  out["validation_loss"] = result.validation_loss;
  out["last_validation_loss"] = result.last_validation_loss;
  out["best_step"] = result.best_step;
}

nlohmann::json as_json(const TrainOptions& options, const TrainResult& result) {
  nlohmann::json out = {{"example", options.example},
                        {"data", result.drawn ? "drawn" : options.data},
                        {"steps", result.steps},
                        {"steps_here", result.steps_here},
                        {"steps_per_second", nullptr},
                        {"batch", options.batch},
                        {"replicas", options.cluster.replicas},
                        {"loss", nullptr},
                        {"params_sha256", result.params_sha256},
                        {"seed", options.seed},
                        {"stopped", result.stopped}};
  if (result.steps_here > 0) {
    out["steps_per_second"] = result.steps_per_second;
    out["loss"] = result.loss;
  }
  if (learns_text(options))
    add_validation(out, result);
  else if (!result.stopped)
    out["test_accuracy"] = result.test_accuracy;
  if (!options.checkpoint_dir.empty()) {
    out["checkpoint"] = newest_good(result.checkpoint);
    out["failed_checkpoints"] = result.failed_checkpoints;
    if (!result.last_checkpoint.ok()) out["checkpoint_error"] = result.last_checkpoint.text();
  }
  if (!options.trace.empty()) {
    out["trace"] = options.trace;
    out["traced_steps"] = result.traced_steps;
    if (!result.trace.ok()) out["trace_error"] = result.trace.text();
  }
  if (!options.logdir.empty()) {
    out["logdir"] = options.logdir;
    out["lost_summaries"] = result.lost_summaries;
    if (!result.summaries.ok()) out["summaries_error"] = result.summaries.text();
  }
  return out;
}

void print_validation(const TrainResult& result) {
  if (result.validation_loss != TrainResult::kUntested)
    print_out("validation loss {:.4f} nats per character, after step {}{}\n",
              result.validation_loss, result.best_step,
              result.drawn ? " (on generated text, not a real dataset)" : "");
  if (!result.stopped) print_out("sample:\n{}\n", result.sample);
}

void print_text(const TrainOptions& options, const TrainResult& result) {
  if (result.steps_here > 0)
    print_out("{}: {} steps, {:.1f} steps/s, loss {:.4f}\n", options.example, result.steps,
              result.steps_per_second, result.loss);
  else if (result.stopped)
    print_out("{}: stopped at step {}, no step done\n", options.example, result.steps);
  else
    print_out("{}: the checkpoint is at step {}; no steps are left\n", options.example,
              result.steps);
  if (learns_text(options))
    print_validation(result);
  else if (!result.stopped)
    print_out("test accuracy {:.4f}{}\n", result.test_accuracy,
              result.drawn ? " (on generated pictures, not a real dataset)" : "");
  if (!result.checkpoint.empty()) print_out("checkpoint {}\n", result.checkpoint);
  if (!options.trace.empty() && result.trace.ok())
    print_out("trace {}: {} steps, for ui.perfetto.dev\n", options.trace, result.traced_steps);
  if (!options.logdir.empty())
    print_out("summaries {}{}: tensorboard --logdir {}\n", options.logdir,
              result.lost_summaries > 0 ? fmt::format(" ({} lost)", result.lost_summaries) : "",
              options.logdir);
  print_out("params_sha256 {}\n", result.params_sha256);
}

// "200" steps or "30s".
std::string parse_every(const std::string& text, TrainOptions& options) {
  std::string digits = text;
  bool seconds = !digits.empty() && digits.back() == 's';
  if (seconds) digits.pop_back();
  std::int64_t value = 0;
  auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  if (error != std::errc{} || end != digits.data() + digits.size() || value < 1)
    return "a number of steps, such as 200, or of seconds, such as 30s";
  if (seconds)
    options.checkpoint_seconds = double(value);
  else
    options.checkpoint_steps = value;
  return {};
}

constexpr std::pair<const char*, nn::OverTime> kOverTime[] = {{"fused", nn::OverTime::fused},
                                                              {"unrolled", nn::OverTime::unrolled},
                                                              {"loop", nn::OverTime::loop}};

// What was typed, and the options that it makes.
struct TrainWords {
  TrainOptions train;
  ClusterWords cluster;
  std::string every, step_memory = "0", over_time = "fused";
  std::int64_t batch = 0;
  bool no_recovery = false;
  std::vector<std::pair<std::string, Option>> of_text, of_pictures;  // those that only some have
  std::vector<std::pair<std::string, Option>> of_checkpoints;
};

// The first of these options that was given; empty: none.
std::string given(const std::vector<std::pair<std::string, Option>>& options) {
  for (const auto& [name, option] : options)
    if (option.given()) return name;
  return {};
}

// Options that mean nothing without another one; empty when all is well.
std::string odd_combination(const TrainWords& words) {
  const TrainOptions& train = words.train;
  if (std::string name = given(words.of_text); !name.empty() && !learns_text(train))
    return fmt::format("{} applies to char-lstm only, not to {}", name, train.example);
  if (std::string name = given(words.of_pictures); !name.empty() && learns_text(train))
    return fmt::format("{} applies to networks for pictures only, not to {}", name, train.example);
  if (std::string name = given(words.of_pictures); !name.empty() && !train.data.empty())
    return fmt::format(
        "{} applies to generated pictures only: with --data, all pictures of the folder are used",
        name);
  if (std::string name = given(words.of_checkpoints);
      !name.empty() && train.checkpoint_dir.empty() && JobOptions::supervised_dir().empty())
    return fmt::format("{} needs --checkpoint-dir", name);
  const bool dir = !train.checkpoint_dir.empty();
  const bool supervised = !JobOptions::supervised_dir().empty();  // resumes by itself
  if (train.resume && !dir && !supervised) return "--resume needs --checkpoint-dir";
  if (train.other_graph && !train.resume && !supervised)
    return "--allow-other-graph needs --resume";
  return {};
}

// What was typed makes sense together; `train` is what it means.
Status understand(TrainWords& words) {
  TROUPE_TRY(known_model(words.train.example));
  TROUPE_TRY(understand(words.cluster, words.train.cluster));
  words.train.recover = !words.no_recovery;
  words.train.batch = words.batch > 0 ? words.batch : learns_text(words.train) ? 32 : 64;
  for (const auto& [word, way] : kOverTime)
    if (words.over_time == word) words.train.over_time = way;
  TROUPE_TRY(words.train.cluster.step_memory, parse_byte_count("--step-memory", words.step_memory));
  if (std::string odd = odd_combination(words); !odd.empty()) return invalid_argument(odd);
  if (!words.every.empty())
    if (std::string wanted = parse_every(words.every, words.train); !wanted.empty())
      return invalid_argument("--checkpoint-every must be " + wanted);
  return check(words.train);
}

int run_train(TrainOptions options, const Printing& printing) {
  std::signal(SIGTERM, on_stop_signal);
  std::signal(SIGINT, on_stop_signal);
  std::signal(SIGPIPE, SIG_IGN);  // whoever read the progress may go
  ProgressLine line(printing.quiet || printing.json);
  options.progress = [&](const TrainOptions::Progress& p) { line.show(p); };
  options.stop = options.cluster.stop = stop_asked;
  options.go_on(JobOptions::supervised_dir());
  if (options.data.empty() && !printing.quiet && !printing.json && options.cluster.join.empty())
    print_err("no --data: training on generated {}\n",
              learns_text(options) ? "text" : fmt::format("{} pictures", options.examples));
  std::string newest;
  options.checkpointed = [&](const std::string& path, const Status& tried) {
    newest = path;
    if (tried.ok()) return;
    line.say(fmt::format(
        "warning: {}; {}", tried.text(),
        path.empty() ? "there is no checkpoint yet" : "the newest good one is " + path));
  };
  auto result = train(options);
  line.close();
  if (!result.ok())
    return report_error(result.status(), printing,
                        options.checkpoint_dir.empty() ? nullptr : &newest);
  if (printing.json)
    print_json(as_json(options, *result));
  else
    print_text(options, *result);
  if (!result->last_checkpoint.ok()) {
    print_err("error: the last checkpoint could not be written: {}\n",
              result->last_checkpoint.text());
    return 1;
  }
  return result->stopped ? exit_code_of_signal(stop_signal()) : 0;
}

}  // namespace

void add_train(CommandLine& line) {
  auto words = std::make_shared<TrainWords>();
  Command c = line.command("train", "Train a network, e.g. troupe train mnist-conv");
  c.option("example", words->train.example,
           "mnist-softmax, mnist-mlp, mnist-conv, mnist-moe, cifar-softmax, cifar-resnet20 or "
           "char-lstm")
      .required();
  c.option("--data", words->train.data,
           "folder of MNIST's IDX files or of CIFAR-10's binary files, or a text file (default: "
           "generated data)");
  words->of_pictures.emplace_back(
      "--examples", c.option("--examples", words->train.examples,
                             "number of generated pictures to train on; a fifth as many are for "
                             "tests (default: 20,000)")
                        .within(1, 10'000'000));
  Option epochs =
      c.option("--epochs", words->train.epochs, "passes over the data (default: 1; char-lstm: 2)")
          .above(0, 1e6);
  c.option("--steps", words->train.steps, "number of training steps, instead of --epochs")
      .within(1, 1'000'000'000)
      .not_with(epochs);
  c.option("--batch", words->batch, "examples per replica and step (default: 64; char-lstm: 32)")
      .within(1, 1'000'000);
  c.option("--learning-rate", words->train.learning_rate,
           "learning rate of SGD with momentum 0.9, or initial learning rate of Adam (char-lstm); "
           "default: the network's own")
      .above(0, 1e6);
  words->of_text.emplace_back("--validate-every",
                              c.option("--validate-every", words->train.validate_steps,
                                       "steps between validations (char-lstm only; default: 500)")
                                  .within(1, 1'000'000'000));
  words->of_text.emplace_back(
      "--patience", c.option("--patience", words->train.patience,
                             "stop after this many validations in a row without improvement "
                             "(char-lstm only; 0: never)")
                        .within(0, 1'000'000));
  words->of_text.emplace_back(
      "--over-time",
      c.option(
           "--over-time", words->over_time,
           "how char-lstm runs over time: fused (one node), unrolled (one subgraph per step), or "
           "loop")
          .one_of({"fused", "unrolled", "loop"}));
  c.option("--replicas", words->train.cluster.replicas,
           "data-parallel copies of the training step (default: 1)")
      .within(1, 1024);
  c.option("--cluster", words->cluster.cluster,
           "local: one process; local:W: W worker processes on this machine; slurm, torchrun: the "
           "processes that these have started");
  c.option("--listen", words->cluster.listen, "HOST:PORT at which workers of other machines join");
  c.option("--wait-for", words->cluster.wait_for, "number of workers to wait for at --listen")
      .within(0, 4096);
  c.option("--spares", words->cluster.spares,
           "workers beyond those that wait there to replace lost ones (default: 0)")
      .within(0, 4096);
  c.option("--replace-within", words->cluster.replace_within,
           "seconds that a lost worker's place may be empty (default: 60)")
      .within(1, kMostReplaceWithin);
  c.option("--secret-file", words->cluster.secret_file,
           "file of 16 to 64 bytes that these workers have, too");
  c.option("--orphan-timeout", words->cluster.orphan_timeout,
           "seconds that a worker of slurm or torchrun waits for its master (default: 60)")
      .within(0, kMostOrphanTimeout);
  c.option("--threads", words->train.cluster.threads,
           "compute threads of each CPU device (default: 0, one per core)")
      .within(0, 1024);
  c.option("--step-memory", words->step_memory,
           "memory limit of a step in each process, e.g. 2GiB (default: 0, none)");
  c.flag("--cuda-sync", words->train.cluster.cuda_sync,
         "wait for each kernel of a GPU, so that an error names the node; slow");
  c.option("--device", words->cluster.devices,
           "device types of each worker (default: CPU); beside CUDA there is a CPU");
  c.option("--seed", words->train.seed, "seed of all random numbers");
  c.option("--checkpoint-dir", words->train.checkpoint_dir, "folder for checkpoints");
  words->of_checkpoints.emplace_back(
      "--checkpoint-every",
      c.option("--checkpoint-every", words->every,
               "write a checkpoint every N steps, or with Ns every N seconds"));
  words->of_checkpoints.emplace_back(
      "--keep", c.option("--keep", words->train.keep, "number of checkpoints to keep (default: 3)")
                    .within(1, 1000));
  c.flag("--resume", words->train.resume, "continue from the newest checkpoint");
  c.flag("--allow-other-graph", words->train.other_graph,
         "resume even if batch size, learning rate or network differ from the checkpoint's");
  c.flag("--gather", words->train.gather,
         "checkpoints pass through this process: for a folder that machines do not share");
  c.flag("--no-recovery", words->no_recovery, "end with exit code 75 when a worker is lost");
  Option trace = c.option("--trace", words->train.trace,
                          "write a trace of all processes to this file, for ui.perfetto.dev");
  c.option("--trace-steps", words->train.trace_steps,
           "number of steps to trace, after the first 3 (default: 10)")
      .within(1, 1'000'000)
      .only_with(trace);
  Option logdir =
      c.option("--logdir", words->train.logdir,
               "folder for TensorBoard: curves, parameters, pictures, the graph, a step");
  c.option("--summary-every", words->train.summary_steps,
           "number of steps between summaries (default: 100)")
      .within(1, 1'000'000'000)
      .only_with(logdir);
  c.runs([words, &line] {
    if (Status odd = understand(*words); !odd.ok()) return report_usage(odd, line.printing());
    words->train.test_examples = std::max<std::int64_t>(1, words->train.examples / 5);
    return run_train(words->train, line.printing());
  });
}

}  // namespace troupe
