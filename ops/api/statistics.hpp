// Moments and norms over some dimensions, made of other ops. f16 and bf16 are computed in f32 and
// rounded once. Options and positional forms are those of sum(): no axes mean all dimensions.
// Variances, and the standard deviations that are made of them, overflow in f32 where elements are
// further than 1e19 from their mean, and vanish within 1e-23 of it; norms do neither.
#pragma once

#include <cstdint>
#include <type_traits>

#include "ops/api/generated.hpp"

namespace troupe {

// The mean, and the mean squared distance from it.
struct MeanAndVariance {
  Output mean, variance;
};
MeanAndVariance moments(Output x, const SumOptions& options = {}, Site site = Site::here());
template <class = void>
MeanAndVariance moments(Output x, Ints axes, Flag keep_dims = false, Site site = Site::here()) {
  return moments(x, {.axes = axes, .keep_dims = keep_dims}, std::move(site));
}
Output variance(Output x, const SumOptions& options = {}, Site site = Site::here());
template <class = void>
Output variance(Output x, Ints axes, Flag keep_dims = false, Site site = Site::here()) {
  return variance(x, {.axes = axes, .keep_dims = keep_dims}, std::move(site));
}
// The root of the variance. Its gradient is 0 where all elements are equal.
Output stddev(Output x, const SumOptions& options = {}, Site site = Site::here());
template <class = void>
Output stddev(Output x, Ints axes, Flag keep_dims = false, Site site = Site::here()) {
  return stddev(x, {.axes = axes, .keep_dims = keep_dims}, std::move(site));
}

// The element of which the part q of the others along `axis` is smaller, q in [0, 1]; between two
// elements, the number in proportion, as numpy.quantile and torch.quantile. NaN if one is NaN. The
// gradient goes to the one or two elements that it is made of. Of floating types; the dimension
// must be known and not 0. Without an axis, of all elements.
Output quantile(Output x, double q, std::int64_t axis, Flag keep_dims = false,
                Site site = Site::here());
Output quantile(Output x, double q, Site site = Site::here());
// The quantile 1/2: of an even number of elements the mean of the two in the middle, as
// numpy.median; torch.median() takes the lower one.
Output median(Output x, std::int64_t axis, Flag keep_dims = false, Site site = Site::here());
Output median(Output x, Site site = Site::here());

struct VectorNormOptions {
  std::vector<std::int64_t> axes = {};
  double order = 2;  // 1 or more, or infinity
  bool keep_dims = false;
};
// The length of vectors: the Euclidean norm sqrt(sum of x^2), or (sum of |x|^order)^(1/order), of
// which that of order infinity is the largest |x|. The powers do not overflow; the gradient is 0
// where the norm is 0.
Output norm(Output x, const VectorNormOptions& options = {}, Site site = Site::here());
template <class = void>
Output norm(Output x, Ints axes, Flag keep_dims = false, Site site = Site::here()) {
  return norm(x, {.axes = axes, .keep_dims = keep_dims}, std::move(site));
}
// norm(x, 2) is of order 2 elsewhere, and would be along dimension 2: norm(x, {2}), or norm(x,
// {.order = 1}).
template <class T, class... More>
requires(std::is_arithmetic_v<T>) Output norm(Output x, T order_or_axis, More... more)
= delete;
// The norm of the given order of the difference of each row of a [..., m, d] and each row of b
// [..., n, d]: [..., m, n]. The gradient of a distance of 0 is 0. Made of all the differences,
// [..., m, n, d].
Output cdist(Output a, Output b, double order = 2, Site site = Site::here());
// x divided by its norm over `axes`, or by `epsilon` where the norm is less.
Output l2_normalize(Output x, Ints axes, double epsilon = 1e-12, Site site = Site::here());

}  // namespace troupe
