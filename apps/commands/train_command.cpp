#include <fmt/format.h>

#include <atomic>
#include <csignal>
#include <nlohmann/json.hpp>

#include "troupe/apps/commands/cli.hpp"
#include "troupe/apps/commands/commands.hpp"
#include "troupe/apps/commands/progress.hpp"

namespace troupe {
namespace {

std::atomic<int> stop_signal{0};  // the first SIGTERM or SIGINT

int code_of(int signal) { return 128 + signal; }

// The first signal stops while waiting for workers or at the next step boundary, the second at
// once.
void on_stop(int signal) {
  int none = 0;
  if (!stop_signal.compare_exchange_strong(none, signal)) _exit(code_of(signal));
}

bool stop_asked() { return stop_signal.load() != 0; }

// Null: there is none.
nlohmann::json newest_good(const std::string& checkpoint) {
  return checkpoint.empty() ? nlohmann::json() : nlohmann::json(checkpoint);
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
  if (!result.stopped) out["test_accuracy"] = result.test_accuracy;
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
  return out;
}

void print_text(const TrainOptions& options, const TrainResult& result) {
  if (result.steps_here > 0)
    fmt::print("{}: {} steps, {:.1f} steps/s, loss {:.4f}\n", options.example, result.steps,
               result.steps_per_second, result.loss);
  else if (result.stopped)
    fmt::print("{}: stopped at step {}, before another one\n", options.example, result.steps);
  else
    fmt::print("{}: the checkpoint is at step {}, nothing is left to do\n", options.example,
               result.steps);
  if (!result.stopped)
    fmt::print("test accuracy {:.4f}{}\n", result.test_accuracy,
               result.drawn ? " (on drawn digits, not MNIST)" : "");
  if (!result.checkpoint.empty()) fmt::print("checkpoint {}\n", result.checkpoint);
  if (!options.trace.empty() && result.trace.ok())
    fmt::print("trace {}: {} steps, for ui.perfetto.dev\n", options.trace, result.traced_steps);
  fmt::print("params_sha256 {}\n", result.params_sha256);
}

}  // namespace

int report_error(const Status& status, const Printing& printing, const std::string* checkpoint) {
  if (printing.json) {
    nlohmann::json out = {{"error", status.text()},
                          {"code", std::string(code_name(status.code()))}};
    if (checkpoint) out["checkpoint"] = newest_good(*checkpoint);
    fmt::print("{}\n", out.dump());
  } else {
    fmt::print(stderr, "error: {}\n", status.text());
  }
  return exit_code(status);
}

int train_command(TrainOptions options, const Printing& printing) {
  std::signal(SIGTERM, on_stop);
  std::signal(SIGINT, on_stop);
  ProgressLine line(printing.quiet || printing.json);
  options.progress = [&](const TrainOptions::Progress& p) { line.show(p); };
  options.stop = options.cluster.stop = stop_asked;
  if (options.data.empty() && !printing.quiet && !printing.json)
    fmt::print(stderr, "no --data: training on {} digits drawn by this program\n",
               options.examples);
  std::string newest;
  options.checkpointed = [&](const std::string& path, const Status& tried) {
    newest = path;
    if (tried.ok()) return;
    line.say(fmt::format(
        "warning: {}; {}", tried.text(),
        path.empty() ? "there is no checkpoint yet" : "the newest good one is " + path));
  };
  auto result = train(options);
  if (!result.ok()) {
    int code =
        report_error(result.status(), printing, options.checkpoint_dir.empty() ? nullptr : &newest);
    bool stopped = stop_asked() && result.status().code() == Code::cancelled;
    return stopped ? code_of(stop_signal) : code;
  }
  if (printing.json)
    fmt::print("{}\n", as_json(options, *result).dump());
  else
    print_text(options, *result);
  if (!result->last_checkpoint.ok()) {
    fmt::print(stderr, "error: the last checkpoint could not be written: {}\n",
               result->last_checkpoint.text());
    return 1;
  }
  return result->stopped ? code_of(stop_signal) : 0;
}

}  // namespace troupe
