// What gradients an op has, by trying: a gradient function may refuse, or add ops that have none.
#pragma once

#include <string>

#include "graph/op_registry.hpp"

namespace troupe::ops::detail {

struct GradientTrial {
  bool first = false;
  bool second = false;
  std::string refusal;  // of a gradient function that says that there is none
};

// Takes the gradient of a node of this op twice. Nothing is known of the shapes in that graph. Of
// second order some gradient must come back through the ops that the gradient function adds, to an
// input or to the gradient that arrived. REQUIRES: op.def.grad, and a node of the op means
// something by itself: it is neither a call nor a part of a function.
GradientTrial try_gradients(const OpRegistry& registry, const OpInfo& op);

}  // namespace troupe::ops::detail
