#include "ops/api/arrays.hpp"

#include <cmath>
#include <limits>

#include "core/rounding.hpp"
#include "ops/api/constant.hpp"
#include "ops/api/math.hpp"
#include "ops/api/node.hpp"
#include "ops/api/operators.hpp"
#include "ops/detail/extent.hpp"
#include "ops/detail/fail_unless.hpp"
#include "ops/detail/wide.hpp"

namespace troupe {

namespace {

[[noreturn]] void refuse_array(std::string what, const Site& site) {
  throw Error(invalid_argument(std::move(what)).at(site));
}

// 0, 1, ... for the slices of x along `axis`.
Output numbers_along(const Output& x, int axis, const Site& site) {
  GraphBuilder& g = x.graph();
  return range(constant<std::int64_t>(g, 0, site), detail::extent(x, axis, site),
               constant<std::int64_t>(g, 1, site), site);
}

}  // namespace

Output log_sum_exp(Output x, const SumOptions& options, Site site) {
  check_given("log_sum_exp: x", x, site);
  const DType dtype = x.dtype();
  x = detail::wide(x, site);
  const Output top = stop_gradient(max(x, {.axes = options.axes, .keep_dims = true}, site), site);
  // An infinity stays out of the exponents: inf - inf is no number. Beside +inf others are nothing.
  const double largest = x.dtype() == DType::f64 ? std::numeric_limits<double>::max()
                                                 : std::numeric_limits<float>::max();
  const Output safe = minimum(maximum(top, -largest, site), largest, site);
  const Output sums = sum(exp(Operand(x, site) - Operand(safe, site), site), options, site);
  // The slope of log at 0 is infinite, that of exp at -inf is 0: their product would be NaN.
  const Output none = Operand(sums, site) == Operand(0.0, site);
  const Output some = log(select(none, Operand(1.0, site), sums, site), site);
  const Operand nothing(-std::numeric_limits<double>::infinity(), site);
  const Output logs = select(none, nothing, some, site);
  return detail::narrow(
      Operand(logs, site) + Operand(reshape(safe, shape(logs, {}, site), site), site), dtype, site);
}

Output argsort(Output x, std::int64_t axis, Flag descending, Site site) {
  return arg_sort(x, {.axis = axis, .descending = descending}, std::move(site));
}

Output boolean_mask(Output x, Output mask, Site site) {
  check_given("boolean_mask: x", x, site);
  check_given("boolean_mask: mask", mask, site);
  if (mask.dtype() != DType::bool_)
    refuse_array("boolean_mask: mask is " + std::string(dtype_name(mask.dtype())) + ", not bool",
                 site);
  const PartialShape whole = x.shape(), part = mask.shape();
  const bool ranks = whole.known_rank() && part.known_rank();
  bool fits = !ranks || part.rank() <= whole.rank(), sure = ranks;
  for (int i = 0; ranks && fits && i < part.rank(); ++i) {
    const bool known = whole.known(i) && part.known(i);
    fits = !known || std::int64_t(whole.dim(i)) == std::int64_t(part.dim(i));
    sure = sure && known;
  }
  if (!fits)
    refuse_array(
        "boolean_mask: mask " + part.text() + " must be the first dimensions of x " + whole.text(),
        site);
  // Elsewhere a mask of fewer rows would pass for one that is false for the others.
  if (!sure && part.known_rank()) {
    const std::vector<std::int64_t> begin{0}, dimensions{part.rank()};
    const Output first = slice(shape(x, {}, site), begin, dimensions, site);
    const Output alike = all(equal(first, shape(mask, {}, site), site), {}, site);
    detail::fail_unless(alike, "boolean_mask: mask is not the first dimensions of x", {&mask},
                        site);
  }
  return gather_nd(x, where(mask, site), std::move(site));
}

Output eye(GraphBuilder& g, std::int64_t rows, DType dtype, Site site) {
  return eye(g, rows, rows, dtype, std::move(site));
}
Output eye(GraphBuilder& g, std::int64_t rows, std::int64_t columns, DType dtype, Site site) {
  return matrix_band_part(ones(g, {rows, columns}, dtype, site), 0, 0, site);
}

Output diag(Output x, Site site) {
  check_given("diag: x", x, site);
  if (x.shape().known_rank() && x.shape().rank() == 0)
    refuse_array("diag: x must have rank 1 or more, not []", site);
  return matrix_diag(x, std::move(site));
}
Output trace(Output x, Site site) { return sum(matrix_diag_part(x, site), {.axes = {-1}}, site); }
Output cholesky_solve(Output factor, Output b, Site site) {
  const Output halfway = matrix_triangular_solve(factor, b, {}, site);
  return matrix_triangular_solve(factor, halfway, {.adjoint = true}, site);
}
Output tril(Output x, Site site) { return matrix_band_part(x, -1, 0, std::move(site)); }
Output triu(Output x, Site site) { return matrix_band_part(x, 0, -1, std::move(site)); }

Output random_shuffle(Output x, Site site) { return gather(x, random_order(x, site), {}, site); }

Output repeat(Output x, std::int64_t times, std::int64_t axis, Site site) {
  check_given("repeat: x", x, site);
  const PartialShape& whole = x.shape();
  if (!whole.known_rank() || axis < -whole.rank() || axis >= whole.rank())
    refuse_array("repeat: no axis " + std::to_string(axis) + " in " + whole.text(), site);
  if (times < 0)
    refuse_array("repeat: times is " + std::to_string(times) + "; it must not be negative", site);
  if (axis < 0) axis += whole.rank();
  const Output places = range(x.graph(), times, site), from = numbers_along(x, int(axis), site);
  // Row i is times times i.
  const Output all =
      add(expand_dims(from, 1, site), zeros_like(expand_dims(places, 0, site), site), site);
  return gather(x, reshape(all, std::vector<std::int64_t>{times == 0 ? 0 : -1}, site),
                {.axis = axis}, site);
}

Output batch_gather(Output params, Output indices, std::int64_t batch_dims, Site site) {
  check_given("batch_gather: params", params, site);
  check_given("batch_gather: indices", indices, site);
  const PartialShape &from = params.shape(), &at = indices.shape();
  if (!at.known_rank()) refuse_array("batch_gather: the rank of indices is not known", site);
  bool fits = batch_dims >= 0 && batch_dims <= at.rank() &&
              (!from.known_rank() || batch_dims < from.rank());
  for (int i = 0; fits && from.known_rank() && i < batch_dims; ++i)
    fits = !from.known(i) || !at.known(i) || std::int64_t(from[i]) == std::int64_t(at[i]);
  if (!fits)
    refuse_array("batch_gather: params " + from.text() + " and indices " + at.text() +
                     " must have the first " + std::to_string(batch_dims) +
                     " dimensions alike, and params one more",
                 site);
  indices = cast(indices, DType::i64, site);
  // params are taken by all their first coordinates at once. They have those of the batch that
  // indices have, or the run fails.
  std::vector<Output> coordinates;
  for (int i = 0; i < batch_dims; ++i) {
    std::vector<std::int64_t> along(std::size_t(at.rank()), 1);
    along[std::size_t(i)] = -1;
    const Output numbers =
        ensure_same_shape(numbers_along(params, i, site), numbers_along(indices, i, site), site);
    coordinates.push_back(add(reshape(numbers, along, site), zeros_like(indices, site), site));
  }
  coordinates.push_back(indices);
  return gather_nd(params, pack(coordinates, {.axis = at.rank()}, site), site);
}

Output tensor_scatter_add(Output x, Output indices, Output updates, Site site) {
  check_given("tensor_scatter_add: x", x, site);
  return add(x, scatter_nd(indices, updates, shape(x, {}, site), site), site);
}

Output sequence_mask(Output lengths, std::int64_t size, Site site) {
  check_given("sequence_mask: lengths", lengths, site);
  if (!is_integer(lengths.dtype()))
    refuse_array(
        "sequence_mask: lengths are " + std::string(dtype_name(lengths.dtype())) + ", not integers",
        site);
  if (size < 0)
    refuse_array("sequence_mask: size is " + std::to_string(size) + "; it must not be negative",
                 site);
  // As i64, so that a size beyond a small type's numbers is no trap; u64 lengths up to 2^63.
  const Output wide = cast(expand_dims(lengths, -1, site), DType::i64, site);
  return less(range(lengths.graph(), size, site), wide, site);
}

Output linspace(GraphBuilder& g, double start, double stop, std::int64_t count, DType dtype,
                Site site) {
  if (count < 0)
    refuse_array("linspace: count is " + std::to_string(count) + "; it must not be negative", site);
  if (!std::isfinite(start) || !std::isfinite(stop))
    refuse_array("linspace: start and stop must be numbers, not infinite", site);
  if (!is_float(dtype))
    refuse_array("linspace: " + std::string(dtype_name(dtype)) + " is no floating type", site);
  Tensor values = value_or_throw(Tensor::make(DType::f64, Shape{count}));
  double* to = values.mutable_data<double>();
  for (std::int64_t i = 0; i < count; ++i) {
    const double part = count == 1 ? 0 : double(i) / double(count - 1);
    to[i] = i == 0 ? start : i + 1 == count ? stop : start * (1 - part) + stop * part;
  }
  const Output exact = constant(g, std::move(values), site);
  return dtype == DType::f64 ? exact : cast(exact, dtype, site);
}

std::vector<Output> meshgrid(const std::vector<Output>& vectors, std::string_view indexing,
                             Site site) {
  if (indexing != "xy" && indexing != "ij")
    refuse_array("meshgrid: indexing is \"" + std::string(indexing) + "\", not \"xy\" or \"ij\"",
                 site);
  if (vectors.empty()) return {};
  const std::size_t n = vectors.size();
  if (n > std::size_t(kMaxRank))
    refuse_array("meshgrid: " + std::to_string(n) + " vectors; the limit is 8", site);
  std::vector<Output> sizes(n), placed(n), grids(n);
  for (std::size_t i = 0; i < n; ++i) {
    check_given("meshgrid: a vector", vectors[i], site);
    const PartialShape& shape = vectors[i].shape();
    if (shape.known_rank() && shape.rank() != 1)
      refuse_array("meshgrid: vectors[" + std::to_string(i) + "] has shape " + shape.text(), site);
    const std::size_t along = indexing == "xy" && i < 2 && n > 1 ? 1 - i : i;
    std::vector<std::int64_t> dims(n, 1);
    dims[along] = shape.known_rank() ? std::int64_t(shape[0]) : -1;
    placed[i] = reshape(vectors[i], dims, site);
    sizes[along] = size(vectors[i], {}, site);
  }
  const Output whole = pack(sizes, {}, site);
  for (std::size_t i = 0; i < n; ++i) grids[i] = broadcast_to(placed[i], whole, site);
  return grids;
}

}  // namespace troupe
