// Shorter forms of the generated wrappers (generated.hpp).
#pragma once

#include <concepts>
#include <cstdint>
#include <initializer_list>
#include <utility>
#include <vector>

#include "ops/api/generated.hpp"

namespace troupe {

namespace detail {
// f of x with dimension `axis` as the last one.
Output along(Output (*f)(Output, Site), Output x, std::int64_t axis, Site site);
}  // namespace detail

template <class T>
Output cast(Output x, Site site = Site::here()) {
  return cast(x, dtype_of<T>, std::move(site));
}

// The absolute value; of complex numbers, too, whose result is real (Abs or ComplexAbs).
Output abs(Output x, Site site = Site::here());

// The index of the largest element along `axis`, or of the smallest, as i64.
Output argmax(Output x, std::int64_t axis = -1, Site site = Site::here());
Output argmin(Output x, std::int64_t axis = -1, Site site = Site::here());
// select() under NumPy's name: a where the condition is true, else b. The form of one argument has
// the places where it is true.
Output where(Output condition, const Operand& a, const Operand& b, Site site = Site::here());
// The logarithm of x to the base 2 or 10.
Output log2(Output x, Site site = Site::here());
Output log10(Output x, Site site = Site::here());
// log(e^a + e^b) without overflow.
Output logaddexp(const Operand& a, const Operand& b, Site site = Site::here());
// The vector 0, 1, ..., limit - 1, of i64; or start, start + delta, ... up to but excluding limit.
Output range(GraphBuilder& g, std::int64_t limit, Site site = Site::here());
Output range(GraphBuilder& g, std::int64_t start, std::int64_t limit, std::int64_t delta = 1,
             Site site = Site::here());

// mat_mul() for two matrices, batch_mat_mul() otherwise. A vector is a row on the left and a column
// on the right, and its dimension is not in the result, as in NumPy: [k] times [k, n] is [n].
Output matmul(Output a, Output b, const MatMulOptions& options = {}, Site site = Site::here());

// The gradient of y, or of the sum of several ys, with respect to each x. An Output is empty if no
// y depends on its x. Throws the errors that troupe::gradients of graph/gradients.hpp returns.
std::vector<Output> gradients(Output y, const std::vector<Output>& xs, Site site = Site::here());
std::vector<Output> gradients(std::initializer_list<Output> ys, const std::vector<Output>& xs,
                              Site site = Site::here());
// With respect to one x: gradients(y, x)[0].
template <std::convertible_to<Output> T>
std::vector<Output> gradients(Output y, const T& x, Site site = Site::here()) {
  return gradients(y, std::vector<Output>{Output(x)}, std::move(site));
}
// With respect to each of several variables, such as net.parameters().
template <std::convertible_to<Output> T>
requires(!std::same_as<T, Output>) std::vector<Output> gradients(Output y, const std::vector<T>& xs,
                                                                 Site site = Site::here()) {
  return gradients(y, std::vector<Output>(xs.begin(), xs.end()), std::move(site));
}

// One dimension may be -1: it is computed from the number of elements.
Output reshape(Output x, const std::vector<std::int64_t>& shape, Site site = Site::here());
// Keeps dimension 0 and merges all others into one. Throws Error unless the others are known.
Output flatten(Output x, Site site = Site::here());
Output broadcast_to(Output x, const std::vector<std::int64_t>& shape, Site site = Site::here());
// The block of the given size that starts at `begin`; size -1: to the end of the dimension.
Output slice(Output x, const std::vector<std::int64_t>& begin,
             const std::vector<std::int64_t>& size, Site site = Site::here());
// Parts of the given sizes along `axis`: split(x, {1, 2}, -1). For n equal parts: split(x, 3, -1).
std::vector<Output> split(Output x, std::initializer_list<std::int64_t> sizes,
                          std::int64_t axis = 0, Site site = Site::here());
// Along one dimension: elements moved over the end return at the beginning.
Output roll(Output x, std::int64_t shift, std::int64_t axis, Site site = Site::here());
// pack() and unpack() under NumPy's names. The number of parts of unstack() must be known.
Output stack(const std::vector<Output>& values, std::int64_t axis = 0, Site site = Site::here());
std::vector<Output> unstack(Output x, std::int64_t axis = 0, Site site = Site::here());
// Padding before and after, for each dimension: pad(x, {{1, 1}, {0, 2}}). A template, so that
// {{0, 2}} is not ambiguous: a braced pair also is the list {0, 2} itself.
template <class = void>
Output pad(Output x, const std::vector<std::pair<std::int64_t, std::int64_t>>& paddings,
           const PadOptions& options = {}, Site site = Site::here()) {
  std::vector<std::int64_t> flat;
  for (const auto& [before, after] : paddings) flat.insert(flat.end(), {before, after});
  return pad(x, std::move(flat), options, std::move(site));
}

// Softmax along `axis`. The rank must be known unless `axis` is -1, the last dimension.
template <Integer T>
Output softmax(Output x, T axis, Site site = Site::here()) {
  return detail::along(softmax, x, axis, std::move(site));
}
template <Integer T>
Output log_softmax(Output x, T axis, Site site = Site::here()) {
  return detail::along(log_softmax, x, axis, std::move(site));
}

struct SoftmaxCrossEntropyOptions {
  // In [0, 1): so much of a label's probability is spread evenly over all classes (Szegedy et al.,
  // 2016).
  double label_smoothing = 0;
};
// One loss for each row of logits [..., C]. Integer labels [...] are class numbers; floating labels
// [..., C] are probabilities, which have a gradient, too: hold those of a teacher constant by
// stop_gradient(). With softmax(logits) as labels it is the entropy.
Output softmax_cross_entropy(Output logits, Output labels, Site site = Site::here());
Output softmax_cross_entropy(Output logits, Output labels,
                             const SoftmaxCrossEntropyOptions& options, Site site = Site::here());

// Windows of size x size with stride `size`.
Output max_pool(Output x, std::int64_t size, Site site = Site::here());
Output avg_pool(Output x, std::int64_t size, Site site = Site::here());
// Windows of size x size with another stride.
Output max_pool(Output x, std::int64_t size, std::int64_t stride,
                const MaxPoolOptions& options = {}, Site site = Site::here());
Output avg_pool(Output x, std::int64_t size, std::int64_t stride,
                const AvgPoolOptions& options = {}, Site site = Site::here());

// Sets each element to 0 with probability `rate` and scales the others by 1 / (1 - rate). Draws new
// random numbers in each run.
Output dropout(Output x, double rate, Site site = Site::here());

}  // namespace troupe
