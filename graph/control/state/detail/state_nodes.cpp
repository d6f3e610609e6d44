#include "graph/control/state/detail/state_nodes.hpp"

namespace troupe::detail {

NodeDef scalar_constant(std::string name, Tensor value, const Site& site) {
  NodeDef node;
  node.name = std::move(name);
  node.op = "Const";
  node.out_types = {value.dtype()};
  node.out_shapes = {PartialShape::scalar()};
  node.attrs = {{"T", value.dtype()}, {"value", std::move(value)}};
  node.site = site;
  return node;
}

Tensor none_of(DType dtype) {
  if (dtype == DType::string) return Tensor::scalar(std::string_view());
  return value_or_throw(Tensor::zeros(dtype, Shape{}));
}

DType dtype_of_variable(const NodeDef& handle) {
  const auto at = handle.attrs.find("T");
  return at == handle.attrs.end() ? DType::i64 : *at->second.get<DType>();
}

void add_state_to(NodeDef& call, std::size_t variables, const std::vector<Port>& first,
                  const std::vector<Port>& last, const NodeCopies& copies) {
  const bool loop = call.op == "While";
  const auto behind = std::ptrdiff_t(loop ? variables : call.inputs.size());
  if (loop) {
    call.attrs.insert_or_assign("variables", Attr(std::int64_t(variables + first.size())));
    const auto reverses = *call.attrs.at("reverses").get<std::int64_t>();
    if (reverses >= std::int64_t(variables))
      call.attrs.insert_or_assign("reverses", Attr(reverses + std::int64_t(first.size())));
  }
  call.inputs.insert(call.inputs.begin() + behind, first.begin(), first.end());
  call.inputs.insert(call.inputs.end(), last.begin(), last.end());
  for (std::size_t k = 0; k < first.size(); ++k) {
    // A loop may take a handle in place of a value.
    const DType dtype = copies.dtype(first[k]);
    const NodeDef& source = copies.made(first[k].node);
    call.out_types.insert(call.out_types.end() - 1,
                          dtype == DType::resource ? dtype_of_variable(source) : dtype);
    call.out_shapes.insert(call.out_shapes.end() - 1, source.out_shapes[first[k].index]);
  }
}

}  // namespace troupe::detail
