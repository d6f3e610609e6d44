#include "troupe/graph/shape_inference.hpp"

#include "troupe/graph/detail/node_check.hpp"

namespace troupe {
namespace {

template <class T>
const T& attr(const AttrMap& attrs, std::string_view name) {
  auto at = attrs.find(name);
  TROUPE_CHECK(at != attrs.end(), "the op declares no attribute " + std::string(name));
  const T* value = at->second.get<T>();
  TROUPE_CHECK(value, "attribute " + std::string(name) + " has another kind");
  return *value;
}

std::string must_have(const InferenceContext& c, int i, const AttrMap& attrs,
                      std::string_view what) {
  return detail::input_label(c.op(), attrs, i) + " must have " + std::string(what) + ", not " +
         c.shape(i).text();
}

}  // namespace

std::optional<std::vector<std::int64_t>> InferenceContext::ints(int i) const {
  const Tensor* t = value(i);
  if (!t || t->rank() > 1) return std::nullopt;
  std::vector<std::int64_t> out;
  if (t->dtype() == DType::i64)
    out.assign(t->span<std::int64_t>().begin(), t->span<std::int64_t>().end());
  else if (t->dtype() == DType::i32)
    out.assign(t->span<std::int32_t>().begin(), t->span<std::int32_t>().end());
  else
    return std::nullopt;
  return out;
}

std::int64_t InferenceContext::int_attr(std::string_view name) const {
  return attr<std::int64_t>(attrs_, name);
}
double InferenceContext::float_attr(std::string_view name) const {
  return attr<double>(attrs_, name);
}
bool InferenceContext::bool_attr(std::string_view name) const { return attr<bool>(attrs_, name); }
const std::string& InferenceContext::string_attr(std::string_view name) const {
  return attr<std::string>(attrs_, name);
}
DType InferenceContext::type_attr(std::string_view name) const { return attr<DType>(attrs_, name); }
const PartialShape& InferenceContext::shape_attr(std::string_view name) const {
  return attr<PartialShape>(attrs_, name);
}
const Tensor& InferenceContext::tensor_attr(std::string_view name) const {
  return attr<Tensor>(attrs_, name);
}
const std::vector<std::int64_t>& InferenceContext::ints_attr(std::string_view name) const {
  return attr<std::vector<std::int64_t>>(attrs_, name);
}

Status InferenceContext::want_rank(int i, int rank) const {
  if (!shape(i).known_rank() || shape(i).rank() == rank) return ok_status();
  return invalid_argument(must_have(*this, i, attrs_, "rank " + std::to_string(rank)));
}

Status InferenceContext::want_rank_at_least(int i, int rank) const {
  if (!shape(i).known_rank() || shape(i).rank() >= rank) return ok_status();
  return invalid_argument(must_have(*this, i, attrs_, "rank " + std::to_string(rank) + " or more"));
}

Expected<int> InferenceContext::axis(std::int64_t axis, int rank) const {
  if (axis >= -rank && axis < rank) return int(axis < 0 ? axis + rank : axis);
  return invalid_argument("axis " + std::to_string(axis) + " is outside [" + std::to_string(-rank) +
                          ", " + std::to_string(rank) + ")");
}

Status same_shape(InferenceContext& c) {
  for (int i = 0; i < c.outputs(); ++i) c.set(i, c.shape(0));
  return ok_status();
}

Status scalar_shape(InferenceContext& c) {
  for (int i = 0; i < c.outputs(); ++i) c.set(i, PartialShape::scalar());
  return ok_status();
}

Status broadcast_shape(InferenceContext& c) {
  TROUPE_TRY(PartialShape shape, broadcast(c.shape(0), c.shape(1)));
  c.set(0, std::move(shape));
  return ok_status();
}

Status no_outputs(InferenceContext&) { return ok_status(); }

Status unknown_shape(InferenceContext&) { return ok_status(); }

}  // namespace troupe
