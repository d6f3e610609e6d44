#include "ops/nn/shapes.hpp"

#include "ops/api/constant.hpp"
#include "ops/api/math.hpp"
#include "ops/detail/wide.hpp"

namespace troupe::nn {

namespace {

Output ints(Output beside, const std::vector<std::int64_t>& values, const Site& site) {
  return constant(beside.graph(),
                  Tensor::of<std::int64_t>(Shape{std::int64_t(values.size())}, values), site);
}

int rank_of(const Output& x, const Site& site) {
  if (x.shape().known_rank()) return x.shape().rank();
  throw Error(
      invalid_argument("the number of dimensions of '" + x.name() + "' must be known").at(site));
}

int place_of(const Output& x, int axis, const Site& site) {
  const int rank = rank_of(x, site), place = axis < 0 ? axis + rank : axis;
  if (place >= 0 && place < rank) return place;
  throw Error(invalid_argument("'" + x.name() + "' has shape " + x.shape().text() +
                               " and no dimension " + std::to_string(axis))
                  .at(site));
}

}  // namespace

Output dimension(Output x, int axis, const Site& site) {
  const int place = place_of(x, axis, site);
  if (x.shape().known(place)) return constant(x.graph(), x.shape()[place], site);
  const Output one = slice(shape(x, {}, site), ints(x, {place}, site), ints(x, {1}, site), site);
  return reshape(one, std::vector<std::int64_t>{}, site);
}

std::int64_t known_dimension(Output x, int axis, std::string_view what, const Site& site) {
  const int place = place_of(x, axis, site);
  if (x.shape().known(place)) return x.shape()[place];
  throw Error(invalid_argument(std::string(what) + " of '" + x.name() + "' must be known, not " +
                               x.shape().text())
                  .at(site));
}

Output reshape_beside(Output y, Output x, int keep, const std::vector<std::int64_t>& tail,
                      const Site& site) {
  const Output first = slice(shape(x, {}, site), ints(x, {0}, site), ints(x, {keep}, site), site);
  return reshape(y, concat({first, ints(x, tail, site)}, {}, site), site);
}

Output reshape_beside(Output y, Output x, const std::vector<std::int64_t>& tail, const Site& site) {
  return reshape(y, concat({shape(x, {}, site), ints(x, tail, site)}, {}, site), site);
}

Output with_last(Output x, std::int64_t size, const Site& site) {
  const int last = place_of(x, -1, site);
  if (!x.shape().known(last)) return reshape_beside(x, x, last, {size}, site);
  if (x.shape()[last] == size) return x;
  throw Error(invalid_argument("the last dimension of '" + x.name() + "' must be " +
                               std::to_string(size) + ", not " + x.shape().text())
                  .at(site));
}

DType dtype_beside(Output parameter, Output x) {
  const bool narrower = detail::is_narrow(x) && parameter.dtype() == DType::f32;
  return narrower ? x.dtype() : parameter.dtype();
}

Output in_dtype_of(Output parameter, Output x, const Site& site) {
  return detail::narrow(parameter, dtype_beside(parameter, x), site);
}

Output affine(Output x, Output w, Output b, const Site& site) {
  const std::int64_t in = w.shape()[0], out = w.shape()[1];
  x = with_last(x, in, site);
  const int rank = x.shape().rank();
  const Output rows = rank == 2 ? x : reshape(x, {-1, in}, site);
  Output y = mat_mul(rows, w, {}, site);
  if (!b.empty()) y = bias_add(y, b, site);
  return rank == 2 ? y : reshape_beside(y, x, rank - 1, {out}, site);
}

}  // namespace troupe::nn
