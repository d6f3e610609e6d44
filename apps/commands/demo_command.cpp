#include <fmt/format.h>

#include <csignal>

#include "apps/commands/command_line.hpp"
#include "apps/commands/print.hpp"
#include "apps/commands/progress.hpp"
#include "apps/training.hpp"

namespace troupe {
namespace {

Expected<TrainResult> train_and_tell(TrainOptions options, const Printing& printing) {
  ProgressLine line(printing.quiet);
  options.progress = [&](const TrainOptions::Progress& p) { line.show(p); };
  return train(options);
}

int run_demo(const Printing& printing) {
  std::signal(SIGPIPE, SIG_IGN);
  TrainOptions linear;
  linear.example = "mnist-softmax";
  linear.steps = 400;
  print_out("A linear classifier on digits that this program draws:\n");
  std::fflush(stdout);
  auto softmax = train_and_tell(linear, printing);
  if (!softmax.ok()) return report_error(softmax.status(), printing);

  TrainOptions network;
  network.example = "mnist-conv";
  network.steps = 400;
  network.cluster.workers = 2;
  network.cluster.replicas = 2;
  network.cluster.threads = 1;
  print_out("A convolutional network, 2 replicas on 2 worker processes:\n");
  std::fflush(stdout);
  auto conv = train_and_tell(network, printing);
  if (!conv.ok()) return report_error(conv.status(), printing);

  double linear_error = 1 - softmax->test_accuracy, conv_error = 1 - conv->test_accuracy;
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
  bool good = conv->test_accuracy >= 0.97 && conv_error <= linear_error / 3;
  if (!good) print_err("error: the network did not learn as well as it should\n");
  return good ? 0 : 1;
}

}  // namespace

void add_demo(CommandLine& line) {
  Command c = line.command("demo", "Train two networks on drawn digits and compare");
  c.runs([&line] { return run_demo(line.printing()); });
}

}  // namespace troupe
