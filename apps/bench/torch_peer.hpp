// PyTorch as a yardstick, run by a script of ours in a process of its own.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "apps/bench/peer_script.hpp"

namespace troupe {

// A python3 with torch on this machine; found once, used for all figures.
class TorchPeer {
 public:
  // /usr/bin/python3 (Debian's python3-torch), then python3 of the PATH when its torch is another
  // one. not_found when neither can import torch.
  static Expected<std::vector<TorchPeer>> find();
  // Those of them whose torch sees a GPU; not_found when none does.
  static Expected<std::vector<TorchPeer>> find_gpu();
  // A training step of one of train_networks(), ready to be timed; or "kernels", of which a round
  // names one of torch_kernels.py: tuned, and beside it as it is
  // where PyTorch computes with MKL on a processor that is not Intel's, and tuned means the path
  // that MKL would not take there by itself.
  Expected<std::vector<PeerStep>> step(std::string_view model, int threads) const;

  // A training step on the GPU, with its input in host memory and its loss fetched; or
  // "matmul.{bf16,f32}.N", some products of N rows and columns, whose number is its units.
  Expected<PeerStep> gpu_step(std::string_view model) const;

  const std::string& python() const { return python_; }

 private:
  explicit TorchPeer(std::string python) : python_(std::move(python)) {}
  std::string python_;
};

}  // namespace troupe
