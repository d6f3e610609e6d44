#include "ops/api/statistics.hpp"

#include <fmt/format.h>

#include <cmath>

#include "ops/api/constant.hpp"
#include "ops/api/math.hpp"
#include "ops/api/node.hpp"
#include "ops/detail/extent.hpp"
#include "ops/detail/fail_unless.hpp"
#include "ops/detail/wide.hpp"

namespace troupe {

using detail::narrow, detail::wide;

namespace {

MeanOptions mean_over(const SumOptions& options) {
  return {.axes = options.axes, .keep_dims = options.keep_dims};
}

// |x|^order
Output power(Output x, double order, const Site& site) {
  if (order == 2) return square(x, site);
  return pow(abs(x, site), number_beside(x, order, "", site), site);
}
// x^(1 / order), with gradient 0 at 0.
Output root(Output x, double order, const Site& site) {
  const Operand zero = number_beside(x, 0, "", site), one = number_beside(x, 1, "", site);
  const Output positive = greater(x, zero, site);
  const Output safe = select(less_equal(x, zero, site), one, x, site);
  // A NaN is no 0, and passes.
  return select(
      logical_or(positive, is_nan(x, site), site),
      order == 2 ? sqrt(safe, site) : pow(safe, number_beside(x, 1 / order, "", site), site), zero,
      site);
}
// The norm of order infinity; 0 of no elements.
Output largest_size(Output x, const SumOptions& over, const Site& site) {
  return relu(max(abs(x, site), {.axes = over.axes, .keep_dims = over.keep_dims}, site), site);
}

// Of two elements in order, the number that is the part `part` of the way from the first to the
// second; finite where they are.
Output between(Output first, Output second, double part, const Site& site) {
  const auto number = [&](double value) { return number_beside(first, value, "", site); };
  return add(mul(first, number(1 - part), site), mul(second, number(part), site), site);
}
// REQUIRES: q is in [0, 1].
Output quantile_along(const char* what, Output x, double q, std::int64_t axis, bool keep_dims,
                      const Site& site) {
  const int place = detail::place_of(x, axis, what, site);
  const std::int64_t n = detail::known_extent(x, place, what, site);
  const DType dtype = x.dtype();
  if (n == 0 || !is_float(dtype))
    throw Error(
        invalid_argument(fmt::format("{}: x is {} {}, and has {}", what, dtype_name(dtype),
                                     x.shape().text(), n == 0 ? "no elements" : "no floating type"))
            .at(site));
  const Output sorted = sort(wide(x, site), {.axis = place}, site).y;
  const auto at = [&](std::int64_t i) {
    return gather(sorted, constant(x.graph(), i, site), {.axis = place}, site);
  };
  const double position = q * double(n - 1);
  const auto before = std::int64_t(position);
  const double part = position - double(before);
  Output y = part == 0 ? at(before) : between(at(before), at(before + 1), part, site);
  const Output last = at(n - 1);  // where a NaN is
  y = select(is_nan(last, site), last, y, site);
  return narrow(keep_dims ? expand_dims(y, place, site) : y, dtype, site);
}

MeanAndVariance wide_moments(Output x, const SumOptions& options, const Site& site) {
  const Output kept = mean(x, {.axes = options.axes, .keep_dims = true}, site);
  const Output spread = mean(square(sub(x, kept, site), site), mean_over(options), site);
  return {options.keep_dims ? kept : mean(x, mean_over(options), site), spread};
}

}  // namespace

MeanAndVariance moments(Output x, const SumOptions& options, Site site) {
  check_given("moments: x", x, site);
  const MeanAndVariance all = wide_moments(wide(x, site), options, site);
  return {narrow(all.mean, x.dtype(), site), narrow(all.variance, x.dtype(), site)};
}

Output variance(Output x, const SumOptions& options, Site site) {
  check_given("variance: x", x, site);
  return narrow(wide_moments(wide(x, site), options, site).variance, x.dtype(), site);
}

Output stddev(Output x, const SumOptions& options, Site site) {
  check_given("stddev: x", x, site);
  const Output spread = wide_moments(wide(x, site), options, site).variance;
  return narrow(root(spread, 2, site), x.dtype(), site);
}

Output norm(Output x, const VectorNormOptions& options, Site site) {
  check_given("norm: x", x, site);
  const double order = options.order;
  if (!(order >= 1))
    throw Error(invalid_argument(fmt::format("norm: order is 1 or more, not {}", order)).at(site));
  const SumOptions over{.axes = options.axes, .keep_dims = options.keep_dims};
  const DType dtype = x.dtype();
  x = wide(x, site);
  if (order == 1) return narrow(sum(abs(x, site), over, site), dtype, site);
  if (std::isinf(order)) return narrow(largest_size(x, over, site), dtype, site);
  const Operand zero = number_beside(x, 0, "", site), one = number_beside(x, 1, "", site);
  // In units of the largest element no power overflows, and none that counts is 0.
  const Output top =
      stop_gradient(max(abs(x, site), {.axes = options.axes, .keep_dims = true}, site), site);
  const Output scales = logical_and(is_finite(top, site), greater(top, zero, site), site);
  const Output unit = select(scales, top, one, site);
  const Output part = root(sum(power(div(x, unit, site), order, site), over, site), order, site);
  const Output units = options.keep_dims ? unit : reshape(unit, shape(part, {}, site), site);
  return narrow(mul(part, units, site), dtype, site);
}

Output cdist(Output a, Output b, double order, Site site) {
  check_given("cdist: a", a, site);
  check_given("cdist: b", b, site);
  const PartialShape of_a = a.shape(), of_b = b.shape();
  const auto refuse = [&](const std::string& why) {
    throw Error(
        invalid_argument(fmt::format("cdist: a is {} and b {}: {}", of_a.text(), of_b.text(), why))
            .at(site));
  };
  if (!of_a.known_rank() || !of_b.known_rank() || of_a.rank() < 2 || of_b.rank() < 2)
    refuse("wants [..., m, d] and [..., n, d]");
  const Dim of_row = of_a[of_a.rank() - 1], of_other = of_b[of_b.rank() - 1];
  if (of_row.known() && of_other.known() && of_row.value() != of_other.value())
    refuse("their rows differ in size");
  if (!of_row.known() || !of_other.known()) {
    const Output alike = equal(detail::extent(a, of_a.rank() - 1, site),
                               detail::extent(b, of_b.rank() - 1, site), site);
    detail::fail_unless(alike, "cdist: the rows of a and b differ in size", {&a, &b}, site);
  }
  const Output rows = expand_dims(wide(a, site), -2, site);
  const Output columns = expand_dims(wide(b, site), -3, site);
  return narrow(norm(sub(rows, columns, site), {.axes = {-1}, .order = order}, site), a.dtype(),
                site);
}

Output quantile(Output x, double q, std::int64_t axis, Flag keep_dims, Site site) {
  if (!(q >= 0 && q <= 1))
    throw Error(invalid_argument(fmt::format("quantile: q is in [0, 1], not {}", q)).at(site));
  return quantile_along("quantile", x, q, axis, keep_dims, site);
}
Output quantile(Output x, double q, Site site) {
  check_given("quantile: x", x, site);
  return quantile(reshape(x, {-1}, site), q, 0, false, site);
}
Output median(Output x, std::int64_t axis, Flag keep_dims, Site site) {
  return quantile_along("median", x, 0.5, axis, keep_dims, site);
}
Output median(Output x, Site site) {
  check_given("median: x", x, site);
  return median(reshape(x, {-1}, site), 0, false, site);
}

Output l2_normalize(Output x, Ints axes, double epsilon, Site site) {
  check_given("l2_normalize: x", x, site);
  if (!(epsilon > 0) || std::isinf(epsilon))
    throw Error(invalid_argument(
                    fmt::format("l2_normalize: epsilon is finite and above 0, not {}", epsilon))
                    .at(site));
  const DType dtype = x.dtype();
  x = wide(x, site);
  const Output length = norm(x, {.axes = axes, .keep_dims = true}, site);
  return narrow(div(x, maximum(length, number_beside(x, epsilon, "", site), site), site), dtype,
                site);
}

}  // namespace troupe
