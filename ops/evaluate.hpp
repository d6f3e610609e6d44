// One node on host values, at once: constant folding and tests.
#pragma once

#include <vector>

#include "core/status.hpp"
#include "devices/device.hpp"
#include "devices/kernel.hpp"
#include "ops/op.hpp"

namespace troupe {

struct EvaluateOptions {
  Lanes* lanes = nullptr;  // null: the calling thread alone
  RandomState random = {};
  bool in_place = false;  // inputs that nobody else holds may be overwritten
};

// Calls a kernel outside of steps; returns its outputs. `in_place`: it may overwrite inputs that
// nobody else holds.
Expected<std::vector<Tensor>> call_with(Kernel& kernel, std::vector<Tensor> inputs,
                                        std::size_t outputs, const KernelPlace& place,
                                        bool in_place, const RandomState& random = {});

// Runs the CPU kernel of `node` on host tensors and returns its outputs. `device` gives memory; it
// must be a CPU. Errors carry the node's site and name it.
Expected<std::vector<Tensor>> evaluate(const OpTable& table, const NodeDef& node,
                                       std::vector<Tensor> inputs, Device& device,
                                       const EvaluateOptions& options = {});

}  // namespace troupe
