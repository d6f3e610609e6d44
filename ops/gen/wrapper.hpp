// One op's typed C++ wrapper as text: a declaration with the definition's documentation, and a
// function that adds the node.
#pragma once

#include <string>
#include <string_view>

#include "graph/op_def.hpp"

namespace troupe::gen {

struct Wrapper {
  std::string declaration;
  std::string definition;
};

// No wrapper is written for ops that only the runtime makes (send, recv, copy, what saves resources),
// nor for the three that have one written by hand.
bool has_wrapper(const OpInfo& op);
Wrapper write_wrapper(const OpInfo& op);

// "MatMul" -> "mat_mul", "Conv2DBackpropInput" -> "conv2d_backprop_input". A trailing underscore
// where C++ has the word to itself.
std::string snake_case(std::string_view name);

}  // namespace troupe::gen
