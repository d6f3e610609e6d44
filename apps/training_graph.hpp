// The step that `troupe train` runs, as a graph: training and `troupe graph` build the same one.
#pragma once

#include <memory>
#include <string>

#include "troupe/apps/models.hpp"
#include "troupe/apps/training.hpp"
#include "troupe/ops/data/data.hpp"

namespace troupe {

struct TrainingGraph {
  std::unique_ptr<ImageModel> model;
  Output images, labels;  // one batch: f32 [batch,...], i64 [batch]
  Output loss;            // mean over the batch
  Output test_labels;     // the next batch of the test set: i64 [any]
  Output correct;         // how many of those are recognised
  Op train;               // one update of all parameters
};

// The pictures that the options name, from files or drawn, once and in order, and their labels.
std::array<Output, 2> one_pass(Graph& graph, const TrainOptions& options, data::Split split,
                               std::int64_t batch, std::string_view name);

// Adds pipeline, network, loss and updates to `graph`. not_found for an unknown example; throws
// Error where the graph does.
Expected<TrainingGraph> build_training(Graph& graph, const TrainOptions& options);

// The graph_sha256 of what trains: the same for data in another folder or fetched further ahead.
std::string training_sha256(const Graph& graph);

}  // namespace troupe
