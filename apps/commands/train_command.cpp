#include <fmt/format.h>

#include <atomic>
#include <csignal>
#include <nlohmann/json.hpp>

#include "apps/commands/cli.hpp"
#include "apps/commands/commands.hpp"
#include "apps/commands/progress.hpp"

namespace troupe {
namespace {

std::atomic<int> stop_signals{0};

// The first signal stops at the next step boundary, the second at once.
void on_stop(int) {
  if (stop_signals.fetch_add(1) > 0) _exit(143);
}

nlohmann::json as_json(const TrainOptions& options, const TrainResult& result) {
  nlohmann::json out = {{"example", options.example},
                        {"data", result.drawn ? "drawn" : options.data},
                        {"steps", result.steps},
                        {"steps_per_second", result.steps_per_second},
                        {"batch", options.batch},
                        {"replicas", options.cluster.replicas},
                        {"loss", result.loss},
                        {"params_sha256", result.params_sha256},
                        {"seed", options.seed},
                        {"stopped", result.stopped}};
  if (!result.stopped) out["test_accuracy"] = result.test_accuracy;
  if (!result.checkpoint.empty()) out["checkpoint"] = result.checkpoint;
  return out;
}

}  // namespace

int report_error(const Status& status, const Printing& printing) {
  if (printing.json)
    fmt::print("{}\n", nlohmann::json{{"error", status.text()},
                                      {"code", std::string(code_name(status.code()))}}
                           .dump());
  else
    fmt::print(stderr, "error: {}\n", status.text());
  return exit_code(status);
}

int train_command(TrainOptions options, const Printing& printing) {
  std::signal(SIGTERM, on_stop);
  std::signal(SIGINT, on_stop);
  ProgressLine line(printing.quiet || printing.json);
  options.progress = [&](const TrainOptions::Progress& p) { line.show(p); };
  options.stop = [] { return stop_signals.load() > 0; };
  if (options.data.empty() && !printing.quiet && !printing.json)
    fmt::print(stderr, "no --data: training on {} digits drawn by this program\n",
               options.examples);
  auto result = train(options);
  if (!result.ok()) return report_error(result.status(), printing);
  if (printing.json) {
    fmt::print("{}\n", as_json(options, *result).dump());
  } else {
    fmt::print("{}: {} steps, {:.1f} steps/s, loss {:.4f}\n", options.example, result->steps,
               result->steps_per_second, result->loss);
    if (!result->stopped)
      fmt::print("test accuracy {:.4f}{}\n", result->test_accuracy,
                 result->drawn ? " (on drawn digits, not MNIST)" : "");
    if (!result->checkpoint.empty()) fmt::print("checkpoint {}\n", result->checkpoint);
    fmt::print("params_sha256 {}\n", result->params_sha256);
  }
  return result->stopped ? 143 : 0;
}

}  // namespace troupe
