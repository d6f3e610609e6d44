// What the generated wrappers stand on.
#pragma once

#include <vector>

#include "graph/builder.hpp"

namespace troupe {

// Adds a node with at least one input to the graph of its inputs. Throws Error, with the node's
// site, when an input is empty or comes from another graph.
Op add_node(NodeSpec spec);

// One input, or a list of them.
class InputList {
 public:
  InputList(const Output& one) : outputs_{one} {}
  InputList(const std::vector<Output>& many) : outputs_(many) {}
  const std::vector<Output>& outputs() const { return outputs_; }

 private:
  std::vector<Output> outputs_;
};
std::vector<Output> flat_inputs(std::initializer_list<InputList> inputs);

}  // namespace troupe
