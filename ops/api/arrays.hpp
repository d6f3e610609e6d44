// What NumPy and TensorFlow programs expect beside the generated wrappers (generated.hpp): masks,
// grids, triangles and orders, written with a few ops each.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "ops/api/constant.hpp"
#include "ops/api/generated.hpp"

namespace troupe {

// log(sum(exp(x))) over the dimensions `axes`, without overflow; -inf of no elements. Elements that
// are all -inf have no gradient.
Output log_sum_exp(Output x, const SumOptions& options = {}, Site site = Site::here());
template <class = void>
Output log_sum_exp(Output x, Ints axes, Flag keep_dims = false, Site site = Site::here()) {
  return log_sum_exp(x, {.axes = axes, .keep_dims = keep_dims}, std::move(site));
}

// Where the elements stand in order along `axis`, as i64. sort() has them beside the elements.
Output argsort(Output x, std::int64_t axis = -1, Flag descending = false, Site site = Site::here());

// The slices of x at which `mask`, a bool tensor in the shape of x's first dimensions, is true:
// [n, ...], with n known when it runs. Throws Error for shapes that are known not to fit.
Output boolean_mask(Output x, Output mask, Site site = Site::here());

// Ones on the diagonal of a matrix of `rows` rows and as many columns, or `columns`.
Output eye(GraphBuilder& g, std::int64_t rows, DType dtype = DType::f32, Site site = Site::here());
Output eye(GraphBuilder& g, std::int64_t rows, std::int64_t columns, DType dtype = DType::f32,
           Site site = Site::here());
// Square matrices with the last dimension of x on the diagonal: [..., n] gives [..., n, n].
Output diag(Output x, Site site = Site::here());
// The sums of the diagonals of matrices: [..., m, n] gives [...].
Output trace(Output x, Site site = Site::here());
// x of factor factor^T x = b, with the lower `factor` that cholesky() has made: [..., n, n], and b
// [..., n, k].
Output cholesky_solve(Output factor, Output b, Site site = Site::here());
// Matrices with zeros above (tril) or below (triu) the diagonal.
Output tril(Output x, Site site = Site::here());
Output triu(Output x, Site site = Site::here());

// The slices along the first dimension of x in a random order, another one in each run. Gradients
// find their way back.
Output random_shuffle(Output x, Site site = Site::here());

// Each slice along `axis` `times` times, one behind the other, as numpy.repeat and
// torch.repeat_interleave; tile() repeats the whole.
Output repeat(Output x, std::int64_t times, std::int64_t axis = 0, Site site = Site::here());

// gather() in each of many tensors: y[b, i, ...] = params[b, indices[b, i], ...], where b stands
// for the first `batch_dims` dimensions, which params and indices have alike (TensorFlow's gather
// with batch_dims). An index out of range is an error. Throws Error unless the rank of indices is
// known, and for shapes that are known not to fit.
Output batch_gather(Output params, Output indices, std::int64_t batch_dims = 1,
                    Site site = Site::here());

// x with the slices of updates added, in order, at the indices that gather_nd() would take them
// from.
Output tensor_scatter_add(Output x, Output indices, Output updates, Site site = Site::here());

// The words as a list: vocabulary_index(x, {"<pad>", "a", "film"}, {.missing = 0}). A template, so
// that an empty pair of braces is an empty tensor, as before.
template <class = void>
Output vocabulary_index(Output x, const std::vector<std::string>& words,
                        const VocabularyIndexOptions& options = {}, Site site = Site::here()) {
  return vocabulary_index(x, detail::vector_of(words), options, std::move(site));
}

// mask[..., j] = j < lengths[...], for j in [0, size).
Output sequence_mask(Output lengths, std::int64_t size, Site site = Site::here());

// `count` numbers in equal steps from `start` to `stop`, both included. Throws Error for a negative
// count, or an end that is no number.
Output linspace(GraphBuilder& g, double start, double stop, std::int64_t count,
                DType dtype = DType::f32, Site site = Site::here());

// For each vector a tensor with a dimension for each of them, along one of which it varies: "xy":
// the first vector along dimension 1 and the second one along dimension 0, as columns and rows of a
// picture; "ij": vector i along dimension i. Throws Error for what is known not to be a vector.
std::vector<Output> meshgrid(const std::vector<Output>& vectors, std::string_view indexing = "xy",
                             Site site = Site::here());

}  // namespace troupe
