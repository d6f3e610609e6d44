// What the generated wrappers leave to say at length.
#pragma once

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

// Where the largest element along `axis` is, as i64.
Output argmax(Output x, std::int64_t axis = -1, Site site = Site::here());

// mat_mul() of two matrices, else batch_mat_mul().
Output matmul(Output a, Output b, const MatMulOptions& options = {}, Site site = Site::here());

// The gradient of y, or of the sum of several ys, with respect to each x; an empty Output where no
// path leads from it to a y. Throws Error where the form in graph/gradients.hpp returns one.
std::vector<Output> gradients(Output y, const std::vector<Output>& xs, Site site = Site::here());
std::vector<Output> gradients(std::initializer_list<Output> ys, const std::vector<Output>& xs,
                              Site site = Site::here());

// One dimension may be -1: what is left.
Output reshape(Output x, const std::vector<std::int64_t>& shape, Site site = Site::here());
// Dimension 0 stays, the others become one. Throws Error unless those are known.
Output flatten(Output x, Site site = Site::here());
Output broadcast_to(Output x, const std::vector<std::int64_t>& shape, Site site = Site::here());
// The block that starts at `begin`; of size -1: the rest.
Output slice(Output x, const std::vector<std::int64_t>& begin,
             const std::vector<std::int64_t>& size, Site site = Site::here());
// Parts of these sizes along `axis`: split(x, {1, 2}, -1). In `n` equal parts: split(x, 3, -1).
std::vector<Output> split(Output x, std::initializer_list<std::int64_t> sizes,
                          std::int64_t axis = 0, Site site = Site::here());
// pack() and unpack() under NumPy's names; how many parts there are must be known.
Output stack(const std::vector<Output>& values, std::int64_t axis = 0, Site site = Site::here());
std::vector<Output> unstack(Output x, std::int64_t axis = 0, Site site = Site::here());
// How much goes before and after, dimension by dimension: pad(x, {{1, 1}, {0, 2}}). A template, so
// that {{0, 2}} is not ambiguous: one pair is the list {0, 2} itself.
template <class = void>
Output pad(Output x, const std::vector<std::pair<std::int64_t, std::int64_t>>& paddings,
           const PadOptions& options = {}, Site site = Site::here()) {
  std::vector<std::int64_t> flat;
  for (const auto& [before, after] : paddings) flat.insert(flat.end(), {before, after});
  return pad(x, std::move(flat), options, std::move(site));
}

// Along any dimension. The rank must be known unless it is the last one, -1.
template <Integer T>
Output softmax(Output x, T axis, Site site = Site::here()) {
  return detail::along(softmax, x, axis, std::move(site));
}
template <Integer T>
Output log_softmax(Output x, T axis, Site site = Site::here()) {
  return detail::along(log_softmax, x, axis, std::move(site));
}

// The loss of each row of logits [..., C]: against class numbers when the labels are integers
// [...], against probabilities [..., C] otherwise.
Output softmax_cross_entropy(Output logits, Output labels, Site site = Site::here());

// Windows of size x size, side by side.
Output max_pool(Output x, std::int64_t size, Site site = Site::here());
Output avg_pool(Output x, std::int64_t size, Site site = Site::here());
// Every `stride` pixels.
Output max_pool(Output x, std::int64_t size, std::int64_t stride,
                const MaxPoolOptions& options = {}, Site site = Site::here());
Output avg_pool(Output x, std::int64_t size, std::int64_t stride,
                const AvgPoolOptions& options = {}, Site site = Site::here());

// Each element becomes 0 with probability `rate`, the others grow by 1 / (1 - rate). Other draws in
// each run.
Output dropout(Output x, double rate, Site site = Site::here());

}  // namespace troupe
