// What is known of tensors before a run: constants, and what ops make of lists of dimensions.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "graph/passes/shape_inference.hpp"

namespace troupe {

// The elements of an i32 or i64 tensor in host memory, when it has rank 0 or 1 and at most
// kMostKnownInts of them.
std::optional<KnownInts> known_ints(const Tensor& value);

// Of each output, as far as the op says; empty when nothing is known of any. REQUIRES: a node that
// passed its checks.
std::vector<KnownValue> known_values(const OpInfo& op, const NodeDef& node,
                                     std::span<const InferenceContext::Input> inputs);

}  // namespace troupe
