#include "graph/passes/shape_inference.hpp"

#include <algorithm>

#include "graph/detail/node_check.hpp"

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

bool KnownInts::complete() const {
  return std::all_of(elements.begin(), elements.end(), [](const Element& e) { return bool(e); });
}

std::optional<std::vector<std::int64_t>> InferenceContext::ints(int i) const {
  const KnownInts* known = known_ints(i);
  if (!known || !known->complete()) return std::nullopt;
  std::vector<std::int64_t> out;
  for (const KnownInts::Element& e : known->elements) out.push_back(*e);
  return out;
}

Expected<PartialShape> InferenceContext::listed_shape(int i) const {
  const PartialShape& list = shape(i);
  if (list.known_rank() && list.rank() > 1) TROUPE_TRY(want_rank(i, 1));
  if (const KnownInts* known = known_ints(i)) {
    std::vector<std::int64_t> dims;
    for (const KnownInts::Element& e : known->elements) {
      if (e && *e < 0) return invalid_argument("dimension " + std::to_string(*e) + " is negative");
      dims.push_back(e.value_or(PartialShape::kUnknown));
    }
    return PartialShape::make(dims);
  }
  if (!list.fully_known() || list.rank() != 1) return PartialShape::unknown();
  if (list.dim(0) > kMaxRank) return invalid_argument("the rank is above the limit of 8");
  return PartialShape::unknown_of_rank(int(list.dim(0)));
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

void same_ints(InferenceContext& c) {
  const KnownInts* known = c.known_ints(0);
  for (int i = 0; known && i < c.outputs(); ++i) c.set_ints(i, *known);
}

void shape_ints(InferenceContext& c) {
  if (!c.shape(0).known_rank()) return;
  KnownInts out;
  for (std::int64_t d : c.shape(0).dims())
    out.elements.push_back(d == PartialShape::kUnknown ? KnownInts::Element() : d);
  c.set_ints(0, std::move(out));
}

void rank_ints(InferenceContext& c) {
  if (c.shape(0).known_rank()) c.set_ints(0, {true, {c.shape(0).rank()}});
}

void size_ints(InferenceContext& c) {
  if (c.shape(0).fully_known()) c.set_ints(0, {true, {c.shape(0).shape().elements()}});
}

}  // namespace troupe
