// Shapes, axes and index lists that come from attributes and host arguments: hostile until checked.
#pragma once

#include <vector>

#include "ops/op.hpp"

namespace troupe {

// The integers of a host tensor of type i32 or i64 and rank <= 1.
Expected<std::vector<std::int64_t>> host_ints(const Tensor& t, std::string_view name);

Expected<int> checked_axis(std::int64_t axis, int rank);

// Which of `rank` dimensions the axes name; all of them for an empty list. invalid_argument for an
// axis outside, or named twice.
Expected<std::vector<bool>> axis_set(const std::vector<std::int64_t>& axes, int rank);

// `dims` with its one -1 replaced by what makes `elements`; elements < 0: unknown.
Expected<PartialShape> resolve_reshape(std::vector<std::int64_t> dims, std::int64_t elements);

// The number of elements of a shape that may be unknown: -1 then.
inline std::int64_t known_elements(const PartialShape& shape) {
  return shape.fully_known() ? shape.shape().elements() : -1;
}

// The shape that a host argument or an attribute asks for: no wildcards.
inline Expected<Shape> checked_shape(const std::vector<std::int64_t>& dims) {
  return Shape::make(dims);
}
// invalid_argument unless elements of the dtype can have the value of attribute `name`: floats and
// complex numbers any, others whole numbers of their range.
Status check_number(std::string_view name, double value, DType dtype);

// For shape functions whose output 0 is what host argument i says.
Status set_shape_from(InferenceContext& c, int i);

}  // namespace troupe
