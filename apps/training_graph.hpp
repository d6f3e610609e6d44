// The step that `troupe train` runs, as a graph: training and `troupe graph` build the same one.
#pragma once

#include <memory>
#include <string>

#include "apps/models.hpp"
#include "apps/text_training.hpp"
#include "apps/training.hpp"
#include "ops/data/data.hpp"

namespace troupe {

struct TrainingGraph {
  std::unique_ptr<ImageModel> model;  // of pictures
  TextTraining text;                  // else
  Output loss;                        // mean over the batch
  Output test_labels;                 // the next batch of what it is tested on: i64
  Output score;     // of those, how many are recognised; of text, the sum of their losses
  Op train;         // one update of all parameters
  Output images;    // of pictures: the batch that is trained on, f32
  double rate = 0;  // of pictures: the learning rate
};

// How many steps the options make, --epochs or --steps. Errors of the data, which is opened.
Expected<std::int64_t> planned_steps(const TrainOptions& options);

// Adds pipeline, network, loss and updates to `graph`. not_found for an unknown example; throws
// Error where the graph does.
Expected<TrainingGraph> build_training(Graph& graph, const TrainOptions& options);

// The graph_sha256 of what trains: the same for data in another folder or fetched further ahead.
std::string training_sha256(const Graph& graph);

}  // namespace troupe
