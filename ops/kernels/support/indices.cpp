#include "ops/kernels/support/indices.hpp"

#include <algorithm>
#include <numeric>

namespace troupe {
namespace {

constexpr std::int64_t kBlock = 1024;

}  // namespace

Status check_indices(const Tensor& indices, std::int64_t limit) {
  Status status;
  with_indices(indices, [&](const auto* at) {
    const std::int64_t n = indices.elements();
    const auto outside = [=](std::int64_t i) { return at[i] < 0 || at[i] >= limit; };
    // A block at a time without branches, which vectorises.
    for (std::int64_t begin = 0; begin < n && status.ok(); begin += kBlock) {
      const std::int64_t end = std::min(n, begin + kBlock);
      unsigned any = 0;
      for (std::int64_t i = begin; i < end; ++i) any |= unsigned(outside(i));
      if (any == 0) continue;
      std::int64_t i = begin;
      while (!outside(i)) ++i;
      status =
          invalid_argument(fmt::format("indices[{}] = {} is outside [0, {})", i, at[i], limit));
    }
  });
  return status;
}

Expected<PartialShape> append(const PartialShape& a, const PartialShape& b, int from) {
  if (!a.known_rank() || !b.known_rank()) return PartialShape::unknown();
  auto dims = a.dims();
  for (int i = from; i < b.rank(); ++i) dims.push_back(b.dim(i));
  return PartialShape::make(dims);
}

Expected<PartialShape> gathered_shape(const PartialShape& indices, const PartialShape& params,
                                      std::int64_t axis) {
  if (!params.known_rank()) return PartialShape::unknown();
  if (params.rank() < 1)
    return invalid_argument("params must have rank 1 or more, not " + params.text());
  TROUPE_TRY(const int at, checked_axis(axis, params.rank()));
  if (!indices.known_rank()) return PartialShape::unknown();
  std::vector<std::int64_t> dims(params.dims().begin(), params.dims().begin() + at);
  dims.insert(dims.end(), indices.dims().begin(), indices.dims().end());
  dims.insert(dims.end(), params.dims().begin() + at + 1, params.dims().end());
  return PartialShape::make(dims);
}

std::vector<std::int64_t> places(const Tensor& indices) {
  std::vector<std::int64_t> all;
  with_indices(indices, [&](const auto* at) { all.assign(at, at + indices.elements()); });
  return all;
}

std::vector<std::int64_t> by_place(const Tensor& indices) {
  std::vector<std::int64_t> order(std::size_t(indices.elements()));
  std::iota(order.begin(), order.end(), std::int64_t{0});
  with_indices(indices, [&](const auto* at) {
    std::stable_sort(order.begin(), order.end(),
                     [at](std::int64_t a, std::int64_t b) { return at[a] < at[b]; });
  });
  return order;
}

}  // namespace troupe
