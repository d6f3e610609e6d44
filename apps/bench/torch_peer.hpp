// PyTorch as a yardstick, run by a script of ours in a process of its own.
#pragma once

#include <string>
#include <vector>

#include "troupe/core/status.hpp"

namespace troupe {

struct TorchFigure {
  std::string version;
  double ms = 0;  // median of a training step
  // Of a PyTorch that computes with MKL on a processor that is not Intel's: "slow path", or "fast
  // path preloaded" where a C compiler made the library that takes it. Else empty.
  std::string mkl;
  std::string name() const { return "torch " + version + (mkl.empty() ? "" : ", MKL's " + mkl); }
};

// A python3 with torch on this machine; found once, used for all figures.
class TorchPeer {
 public:
  // /usr/bin/python3 (Debian's python3-torch), then python3 of the PATH when its torch is another
  // one. not_found when neither can import torch.
  static Expected<std::vector<TorchPeer>> find();
  // One step of a network of train_networks(), timed for that long. `plain`: as it is, MKL's slow
  // path included.
  Expected<TorchFigure> step(const std::string& model, int threads, double seconds,
                             bool plain = false) const;

 private:
  explicit TorchPeer(std::string python) : python_(std::move(python)) {}
  std::string python_;
};

}  // namespace troupe
