#include <fmt/format.h>

#include <csignal>
#include <nlohmann/json.hpp>
#include <string_view>

#include "apps/commands/command_line.hpp"
#include "apps/commands/print.hpp"
#include "apps/commands/progress.hpp"
#include "apps/training.hpp"

namespace troupe {
namespace {

Expected<TrainResult> train_and_tell(TrainOptions options, const Printing& printing) {
  ProgressLine line(printing.quiet || printing.json);
  options.progress = [&](const TrainOptions::Progress& p) { line.show(p); };
  return train(options);
}

void say(std::string_view text, const Printing& printing) {
  if (printing.json) return;
  write_out(text);
  std::fflush(stdout);
}

nlohmann::json as_json(const TrainResult& result) {
  return {{"steps", result.steps},
          {"steps_per_second", result.steps_per_second},
          {"test_accuracy", result.test_accuracy},
          {"params_sha256", result.params_sha256}};
}

int run_demo(const Printing& printing) {
  std::signal(SIGPIPE, SIG_IGN);
  TrainOptions linear;
  linear.example = "mnist-softmax";
  linear.steps = 400;
  say("A linear classifier on digits that this program draws:\n", printing);
  auto softmax = train_and_tell(linear, printing);
  if (!softmax.ok()) return report_error(softmax.status(), printing);

  TrainOptions network;
  network.example = "mnist-conv";
  network.steps = 200;
  network.cluster.workers = 2;
  network.cluster.replicas = 2;
  network.cluster.threads = 1;
  say("A convolutional network, 2 replicas on 2 worker processes:\n", printing);
  auto conv = train_and_tell(network, printing);
  if (!conv.ok()) return report_error(conv.status(), printing);

  double linear_error = 1 - softmax->test_accuracy, conv_error = 1 - conv->test_accuracy;
  const bool good = conv->test_accuracy >= 0.97 && conv_error <= linear_error / 3;
  if (printing.json) {
    print_json({{"test_examples", network.test_examples},
                {"mnist-softmax", as_json(*softmax)},
                {"mnist-conv", as_json(*conv)},
                {"good", good}});
    return good ? 0 : 1;
  }
  print_out("\nOn {} drawn test digits:\n", network.test_examples);
  print_out("  mnist-softmax  error rate {:5.2f} %\n", 100 * linear_error);
  print_out("  mnist-conv     error rate {:5.2f} %   (accuracy {:.4f})\n", 100 * conv_error,
            conv->test_accuracy);
  print_out(
      "\nTry next:\n"
      "  build/bin/troupe train mnist-conv --data DIR     on MNIST's IDX files\n"
      "  build/bin/troupe train mnist-conv --replicas 2 --cluster local:2 --checkpoint-dir "
      "ckpt --checkpoint-every 10s\n"
      "  build/bin/troupe graph mnist-mlp --format dot    the graph, as Graphviz text\n"
      "  ./dev test                                       the tests\n");
  if (!good) print_err("error: the network did not learn as well as it should\n");
  return good ? 0 : 1;
}

}  // namespace

void add_demo(CommandLine& line) {
  Command c = line.command("demo", "Train two networks on generated digits and compare them");
  c.runs([&line] { return run_demo(line.printing()); });
}

}  // namespace troupe
