#include "ops/api/node.hpp"

namespace troupe {

Op add_node(NodeSpec spec) {
  // The builder finds inputs that are empty or foreign; here it only has to be found itself.
  for (const Output& input : spec.inputs)
    if (!input.empty()) return input.graph().add(std::move(spec));
  const char* why = spec.inputs.empty() ? ": no input is given" : ": all inputs are empty";
  throw Error(invalid_argument(spec.op + why).at(spec.site));
}

void check_given(std::string_view what, const Output& value, const Site& site) {
  if (value.empty()) throw Error(invalid_argument(std::string(what) + " is empty").at(site));
}

Operand number_beside(const Output& x, double number, std::string_view what, const Site& site) {
  check_given(what, x, site);
  return Operand(Operand(number, site).beside(x, site), site);
}

Output value_beside(const Operand& one, std::initializer_list<const Operand*> all,
                    const Site& site) {
  if (!one.is_number()) return one.output();
  for (const Operand* other : all)
    if (!other->is_number()) return one.beside(other->output(), site);
  throw Error(
      invalid_argument("all operands are numbers: make one of them a constant(g, ...)").at(site));
}

std::vector<Output> flat_inputs(std::initializer_list<InputList> inputs) {
  std::vector<Output> out;
  for (const InputList& list : inputs)
    out.insert(out.end(), list.outputs().begin(), list.outputs().end());
  return out;
}

}  // namespace troupe
