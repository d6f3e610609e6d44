// PyTorch as a yardstick, run by a script of ours in a process of its own.
#pragma once

#include <string>
#include <vector>

#include "core/status.hpp"

namespace troupe {

struct TorchFigure {
  std::string version;
  double ms = 0;  // median of a training step
};

// A python3 with torch on this machine; found once, used for all figures.
class TorchPeer {
 public:
  // /usr/bin/python3 (Debian's python3-torch), then python3 of the PATH when its torch is another
  // one. not_found when neither can import torch.
  static Expected<std::vector<TorchPeer>> find();
  // One step of "mlp" or "lenet", timed for that long.
  Expected<TorchFigure> step(const std::string& model, int threads, double seconds) const;

 private:
  explicit TorchPeer(std::string python) : python_(std::move(python)) {}
  std::string python_;
};

}  // namespace troupe
