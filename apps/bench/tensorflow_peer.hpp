// TensorFlow as a yardstick, run by a script of ours in a process of its own.
#pragma once

#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include "apps/bench/peer_script.hpp"

namespace troupe {

// A python3 with tensorflow on this machine; found once, used for all figures.
class TensorflowPeer {
 public:
  // python3 of the PATH, then /usr/bin/python3; not_found when neither can import tensorflow.
  static Expected<TensorflowPeer> find();
  // One step of a network of train_networks(), or "null": ten nodes that do nothing; ready to be
  // timed in each of its modes.
  Expected<std::vector<PeerStep>> step(std::string_view model, int threads) const;
  // The loop of the row executor.loop.NAME, on one thread where it runs on one device: in both
  // modes, where it runs on two as a graph.
  Expected<std::vector<PeerStep>> loop(std::string_view name, bool two_devices) const;

  const std::string& python() const { return python_; }

 private:
  Expected<std::vector<PeerStep>> ready(const std::string& model, int threads,
                                        std::initializer_list<const char*> modes) const;
  explicit TensorflowPeer(std::string python) : python_(std::move(python)) {}
  std::string python_;
};

}  // namespace troupe
