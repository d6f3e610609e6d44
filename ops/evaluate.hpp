// One node on host values, at once: constant folding and tests.
#pragma once

#include <vector>

#include "troupe/core/status.hpp"
#include "troupe/devices/device.hpp"
#include "troupe/devices/kernel.hpp"
#include "troupe/ops/op.hpp"

namespace troupe {

struct EvaluateOptions {
  Lanes* lanes = nullptr;  // null: the calling thread alone
  RandomState random = {};
  bool in_place = false;  // inputs that nobody else holds may be overwritten
};

// Runs the CPU kernel of `node` on host tensors and returns its outputs. `device` gives memory; it
// must be a CPU. Errors carry the node's site and name it.
Expected<std::vector<Tensor>> evaluate(const OpTable& table, const NodeDef& node,
                                       std::vector<Tensor> inputs, Device& device,
                                       const EvaluateOptions& options = {});

}  // namespace troupe
