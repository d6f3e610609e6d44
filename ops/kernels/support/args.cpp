#include "ops/kernels/support/args.hpp"

#include <fmt/core.h>

namespace troupe {

Status check_number(std::string_view name, double value, DType dtype) {
  if (can_hold(dtype, value)) return ok_status();
  return invalid_argument(fmt::format("{} is {}, which is no {}", name, value, dtype_name(dtype)));
}

Expected<std::vector<std::int64_t>> host_ints(const Tensor& t, std::string_view name) {
  if (t.rank() > 1)
    return invalid_argument(std::string(name) + " must have rank 0 or 1, not " + t.shape().text());
  std::vector<std::int64_t> out;
  if (t.dtype() == DType::i32)
    out.assign(t.span<std::int32_t>().begin(), t.span<std::int32_t>().end());
  else
    out.assign(t.span<std::int64_t>().begin(), t.span<std::int64_t>().end());
  return out;
}

Expected<int> checked_axis(std::int64_t axis, int rank) {
  if (axis >= -rank && axis < rank) return int(axis < 0 ? axis + rank : axis);
  return invalid_argument("axis " + std::to_string(axis) + " is outside [" + std::to_string(-rank) +
                          ", " + std::to_string(rank) + ")");
}

Expected<std::vector<bool>> axis_set(const std::vector<std::int64_t>& axes, int rank) {
  std::vector<bool> set(std::size_t(rank), axes.empty());
  for (std::int64_t a : axes) {
    TROUPE_TRY(int axis, checked_axis(a, rank));
    if (set[std::size_t(axis)])
      return invalid_argument("axis " + std::to_string(a) + " stands twice in the list of axes");
    set[std::size_t(axis)] = true;
  }
  return set;
}

Expected<PartialShape> resolve_reshape(std::vector<std::int64_t> dims, std::int64_t elements) {
  std::int64_t* wild = nullptr;
  std::vector<std::int64_t> rest;
  for (std::int64_t& d : dims) {
    if (d >= 0) {
      rest.push_back(d);
    } else if (d < -1 || wild != nullptr) {
      return invalid_argument(d < -1 ? "dimension " + std::to_string(d) + " is negative"
                                     : "only one dimension of a shape can be -1");
    } else {
      wild = &d;
    }
  }
  if (dims.size() > std::size_t(kMaxRank))
    return invalid_argument("rank " + std::to_string(dims.size()) + " is above the limit of 8");
  TROUPE_TRY(Shape known, Shape::make(rest));
  const std::int64_t n = known.elements();
  if (elements >= 0 && wild != nullptr && n > 0 && elements % n == 0) *wild = elements / n;
  TROUPE_TRY(PartialShape shape, PartialShape::make(dims));
  const bool fits = elements < 0 || (shape.fully_known() && n * (wild ? *wild : 1) == elements);
  if (fits) return shape;
  return invalid_argument("cannot make shape " + shape.text() + " of " + std::to_string(elements) +
                          " elements");
}

Status set_shape_from(InferenceContext& c, int i) {
  TROUPE_TRY(PartialShape shape, c.listed_shape(i));
  c.set(0, std::move(shape));
  return ok_status();
}

}  // namespace troupe
