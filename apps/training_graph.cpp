#include "troupe/apps/training_graph.hpp"

#include "troupe/serialization/graph_io.hpp"

namespace troupe {

data::Images training_images(const TrainOptions& options, data::Split split) {
  if (!options.data.empty()) return data::idx(options.data, split).size(28, 28);
  return data::digits(split == data::Split::train ? options.examples : options.test_examples,
                      split);
}

Expected<TrainingGraph> build_training(Graph& graph, const TrainOptions& options) {
  TrainingGraph out;
  auto [images, labels] = training_images(options, data::Split::train)
                              .shuffle(60'000)
                              .batch(options.batch)
                              .repeat()
                              .seed(options.seed)
                              .prefetch(2 * options.cluster.replicas)
                              .outputs(graph);
  out.images = images;
  out.labels = labels;
  TROUPE_TRY(out.model, make_model(options.example, graph));
  Output logits = (*out.model)(images);
  out.loss = mean(softmax_cross_entropy(logits, labels));
  // Tested with the same variables, on all of the test set in order: its last batch may be short.
  auto [test_images, test_labels] =
      training_images(options, data::Split::test).batch(500).prefetch(1).outputs(graph, "test");
  out.test_labels = test_labels;
  Output answers = argmax((*out.model)(test_images), 1);
  out.correct = sum(cast<float>(answers == out.test_labels));
  bool linear = options.example == "mnist-softmax";
  double rate = options.learning_rate > 0 ? options.learning_rate : linear ? 0.1 : 0.02;
  out.train = optim::Momentum{.lr = rate, .momentum = 0.9}.minimize(out.loss);
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
