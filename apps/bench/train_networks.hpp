// The networks whose training steps `troupe bench train` times: what apps/bench/torch_peer.py
// trains, too, with the same shapes, optimizer and loss, unless it is said that no peer does.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "apps/troupe.hpp"

namespace troupe {

// A training step on one batch in memory: what is timed is the step alone.
struct TrainStep {
  Graph graph{1};
  std::unique_ptr<nn::Module, void (*)(nn::Module*)> model{nullptr, nullptr};
  Output x, y, loss;  // y: labels
  Op train;
  std::vector<Tensor> feeds;  // of x and y: noise
  bool small = false;         // as little as a step can be of, where nobody asks how long it takes
};

struct TrainNetwork {
  std::string name;                  // in rows
  double rate;                       // of SGD with momentum 0.9
  Status (*build)(TrainStep& step);  // all but `train`
  bool of_peers = true;
};

std::span<const TrainNetwork> train_networks();
const TrainNetwork* find_train_network(std::string_view name);
Expected<std::unique_ptr<TrainStep>> make_train_step(const TrainNetwork& network,
                                                     bool small = false);

}  // namespace troupe
