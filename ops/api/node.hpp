// What the generated wrappers stand on.
#pragma once

#include <string_view>
#include <vector>

#include "graph/builder.hpp"
#include "ops/api/operators.hpp"

namespace troupe {

// Adds a node with at least one input to the graph of its inputs. Throws Error, with the node's
// site, when an input is empty or comes from another graph.
Op add_node(NodeSpec spec);

// The value of `one`; a number is a constant of the dtype of the first value in `all`. Throws Error
// for numbers alone.
Output value_beside(const Operand& one, std::initializer_list<const Operand*> all,
                    const Site& site);
// Throws Error, with that site, for an empty value: "dropout: x is empty".
void check_given(std::string_view what, const Output& value, const Site& site);
// `number` in x's dtype. Throws Error, with that site, for an empty x.
Operand number_beside(const Output& x, double number, std::string_view what, const Site& site);

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
