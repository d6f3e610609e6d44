#include "apps/training_graph.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "actors/resources/dataset_actor.hpp"
#include "ops/data/pipeline.hpp"
#include "serialization/graph_io.hpp"

namespace troupe {

namespace {

bool is_cifar(const TrainOptions& options) { return options.example.starts_with("cifar-"); }

std::int64_t drawn(const TrainOptions& options, data::Split split) {
  return split == data::Split::train ? options.examples : options.test_examples;
}

data::FixedExamples<2> pictures(const TrainOptions& options, data::Split split) {
  if (is_cifar(options))
    return options.data.empty() ? data::shapes(drawn(options, split), split)
                                : data::cifar10(options.data, split);
  return options.data.empty() ? data::digits(drawn(options, split), split)
                              : data::idx(options.data, split);
}

// For ever, in another order in each epoch.
std::array<Output, 2> batches(Graph& graph, const TrainOptions& options) {
  const std::int64_t ahead = 2 * options.cluster.replicas;
  if (is_cifar(options))
    return pictures(options, data::Split::train)
        .shuffle(60'000, options.seed)
        .repeat()
        .batch(options.batch, data::Remainder::drop)
        .prefetch(ahead)
        .outputs(graph);
  return pictures(options, data::Split::train)
      .shuffle(60'000, options.seed)
      .batch(options.batch, data::Remainder::drop)
      .repeat()
      .prefetch(ahead)
      .outputs(graph);
}

// Of SGD with momentum 0.9.
struct Rule {
  double rate = 0.02, weight_decay = 0;
};
Rule rule_of(const std::string& example) {
  if (example == "mnist-softmax") return {.rate = 0.1};
  if (example == "mnist-moe") return {.rate = 0.05};
  if (example == "cifar-softmax") return {.rate = 0.002};
  if (example == "cifar-resnet20") return {.rate = 0.05, .weight_decay = 1e-4};
  return {};
}

// The pictures that the options name, from files or drawn, once and in order, and their labels.
std::array<Output, 2> one_pass(Graph& graph, const TrainOptions& options, data::Split split,
                               std::int64_t batch, std::string_view name) {
  return pictures(options, split).batch(batch).prefetch(1).outputs(graph, name);
}

// How many there are, found by opening them in this process.
Expected<std::uint64_t> count_examples(const TrainOptions& options) {
  Graph scratch;
  Output element;
  if (learns_text(options)) {
    TROUPE_TRY(const auto windows, text_windows(scratch, options, "count"));
    element = windows[0];
  } else {
    element = one_pass(scratch, options, data::Split::train, 1, "count")[0];
  }
  const NodeId handle = scratch.node(element.node()).inputs[0].node;
  TROUPE_TRY(const Pipeline pipeline, open_local_dataset(scratch.node(handle)));
  return pipeline.elements().value_or(0);
}

// Where nobody says how many.
double usual_epochs(const TrainOptions& options) { return learns_text(options) ? 2 : 1; }

Expected<TrainingGraph> build_of_text(Graph& graph, const TrainOptions& options) {
  TrainingGraph out;
  TROUPE_TRY(const std::int64_t steps, planned_steps(options));
  TROUPE_TRY(out.text, build_text_training(graph, options, steps));
  out.loss = out.text.loss;
  out.test_labels = out.text.held_out;
  out.score = out.text.its_loss;
  out.train = out.text.train;
  return out;
}

}  // namespace

Expected<std::int64_t> planned_steps(const TrainOptions& options) {
  TROUPE_TRY(const std::uint64_t examples, count_examples(options));
  if (examples == 0) return invalid_argument("there are no examples to train on");
  // Such a batch would never be full.
  if (std::uint64_t(options.batch) > examples)
    return invalid_argument(fmt::format("a batch of {} is more than the {} examples that there are",
                                        options.batch, examples));
  if (options.steps > 0) return options.steps;
  const double epochs = options.epochs > 0 ? options.epochs : usual_epochs(options);
  const auto batch = double(options.batch * options.cluster.replicas);
  const double steps = std::floor(double(examples) / batch * epochs);
  if (steps < 1)
    return invalid_argument(
        fmt::format("{} epochs of {} examples are less than one step of {} examples", epochs,
                    examples, options.batch * options.cluster.replicas));
  return std::int64_t(std::min(steps, 1e15));
}

Expected<TrainingGraph> build_training(Graph& graph, const TrainOptions& options) {
  if (learns_text(options)) return build_of_text(graph, options);
  TrainingGraph out;
  auto [images, labels] = batches(graph, options);
  out.images = images;
  TROUPE_TRY(out.model, make_model(options.example, graph));
  {
    auto training = out.model->train();
    out.loss = out.model->loss(images, labels);
  }
  // Tested with the same variables, on all of the test set in order: its last batch may be short.
  auto [test_images, test_labels] = one_pass(graph, options, data::Split::test, 500, "test");
  out.test_labels = test_labels;
  Output answers = argmax((*out.model)(test_images), 1);
  out.score = sum(cast<float>(answers == out.test_labels));
  const Rule rule = rule_of(options.example);
  out.rate = options.learning_rate > 0 ? options.learning_rate : rule.rate;
  out.train =
      optim::Momentum{.lr = out.rate, .momentum = 0.9, .weight_decay = rule.weight_decay}.minimize(
          out.loss);
  return out;
}

std::string training_sha256(const Graph& graph) {
  GraphDef def = graph.def();
  for (NodeDef& node : def.nodes)
    if (node.op == "Dataset" || node.op == "DataPipeline")
      for (const char* where : {"files", "prefetch"}) node.attrs.erase(where);
  return graph_sha256(def);
}

}  // namespace troupe
