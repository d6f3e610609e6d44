// TensorFlow as a yardstick, run by a script of ours in a process of its own.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "troupe/core/status.hpp"

namespace troupe {

struct TensorflowFigure {
  std::string version, mode;
  double ms = 0, p99_ms = 0;  // of a step; the median
  double units = 1;           // of a loop: iterations or nodes of a step
  std::string name() const { return "tensorflow " + version + ", " + mode; }
};

// A python3 with tensorflow on this machine; found once, used for all figures.
class TensorflowPeer {
 public:
  // python3 of the PATH, then /usr/bin/python3; not_found when neither can import tensorflow.
  static Expected<TensorflowPeer> find();
  // One step of a network of train_networks(), or "null": ten nodes that do nothing; timed for that
  // long in each of its modes, the fastest first.
  Expected<std::vector<TensorflowFigure>> step(std::string_view model, int threads,
                                               double seconds) const;
  // The loop of the row executor.loop.NAME, on one thread where it runs on one device: in both
  // modes, where it runs on two as a graph.
  Expected<std::vector<TensorflowFigure>> loop(std::string_view name, bool two_devices,
                                               double seconds) const;

 private:
  Expected<std::vector<TensorflowFigure>> figures(const std::string& model, int threads,
                                                  double seconds,
                                                  std::initializer_list<const char*> modes) const;
  explicit TensorflowPeer(std::string python) : python_(std::move(python)) {}
  std::string python_;
};

}  // namespace troupe
