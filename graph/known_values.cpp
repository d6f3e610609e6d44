#include "graph/known_values.hpp"

#include <algorithm>

namespace troupe {
namespace {

// Types that lists of dimensions have.
bool is_listed(DType type) { return type == DType::i32 || type == DType::i64; }

// A kernel refuses what does not fit, or wraps it around: either way it is not this number.
void drop_unfit(KnownInts& ints) {
  for (KnownInts::Element& e : ints.elements)
    if (e && *e != std::int32_t(*e)) e.reset();
}

template <class T>
Tensor tensor_of(const KnownInts& ints) {
  std::vector<T> values;
  for (const KnownInts::Element& e : ints.elements) values.push_back(T(*e));
  const Shape shape = ints.scalar ? Shape{} : Shape{ints.size()};
  return Tensor::of<T>(shape, std::span<const T>(values));
}
Tensor tensor_of(const KnownInts& ints, DType type) {
  return type == DType::i64 ? tensor_of<std::int64_t>(ints) : tensor_of<std::int32_t>(ints);
}

std::optional<KnownInts> known_output(std::optional<KnownInts>& ints, DType type,
                                      const PartialShape& shape) {
  if (!ints || !is_listed(type) || ints->elements.size() > kMostKnownInts) return std::nullopt;
  if (!PartialShape::merge(ints->shape(), shape).ok()) return std::nullopt;
  if (type == DType::i32) drop_unfit(*ints);
  return std::move(ints);
}

}  // namespace

std::optional<KnownInts> known_ints(const Tensor& value) {
  if (!value.defined() || !is_listed(value.dtype()) || value.rank() > 1 ||
      value.elements() > std::int64_t(kMostKnownInts) ||
      value.buffer().size() < value.offset() + value.bytes())
    return std::nullopt;
  KnownInts out{value.rank() == 0, {}};
  if (value.dtype() == DType::i64)
    out.elements.assign(value.span<std::int64_t>().begin(), value.span<std::int64_t>().end());
  else
    out.elements.assign(value.span<std::int32_t>().begin(), value.span<std::int32_t>().end());
  return out;
}

std::vector<KnownValue> known_values(const OpInfo& op, const NodeDef& node,
                                     std::span<const InferenceContext::Input> inputs) {
  if (node.op == "Const") {
    auto at = node.attrs.find("value");
    auto* value = at == node.attrs.end() ? nullptr : at->second.get<Tensor>();
    if (!value) return {};
    return {{*value, known_ints(*value)}};
  }
  if (!op.def.value || std::none_of(node.out_types.begin(), node.out_types.end(), is_listed))
    return {};
  // What a body takes from around it is known for its shapes, and is no constant: it may be fed.
  const bool constant = std::none_of(inputs.begin(), inputs.end(), [](const auto& input) {
    return input.ints && input.ints->complete() && !input.value;
  });
  InferenceContext context(op, node.attrs, inputs, node.out_types.size());
  for (std::size_t i = 0; i < node.out_shapes.size(); ++i) context.set(int(i), node.out_shapes[i]);
  op.def.value(context);
  if (context.known_outputs().empty()) return {};
  std::vector<KnownValue> out(node.out_types.size());
  for (std::size_t i = 0; i < out.size(); ++i) {
    const DType type = node.out_types[i];
    out[i].ints = known_output(context.known_outputs()[i], type, node.out_shapes[i]);
    if (constant && out[i].ints && out[i].ints->complete())
      out[i].value = tensor_of(*out[i].ints, type);
  }
  const bool any =
      std::any_of(out.begin(), out.end(), [](const KnownValue& v) { return !!v.ints; });
  return any ? out : std::vector<KnownValue>{};
}

}  // namespace troupe
