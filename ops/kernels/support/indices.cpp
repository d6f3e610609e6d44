#include "ops/kernels/support/indices.hpp"

#include <algorithm>
#include <array>
#include <numeric>
#include <utility>

namespace troupe {
namespace {

constexpr std::int64_t kIndexBlock = 1024;

// A place, and in the low half the number of the index: both below 2^32.
constexpr int kNumberBits = 32;

// Sorts them by place, digit by digit from the lowest: equal ones keep their order.
void sort_by_digits(std::vector<std::uint64_t>& keys, std::uint64_t most) {
  constexpr int kDigit = 8;
  std::vector<std::uint64_t> sorted(keys.size());
  for (int shift = 0; most >> shift != 0; shift += kDigit) {
    std::array<std::size_t, 1 << kDigit> begins{};
    const auto digit = [shift](std::uint64_t key) {
      return key >> (kNumberBits + shift) & ((1 << kDigit) - 1);
    };
    for (const std::uint64_t key : keys) ++begins[digit(key)];
    std::size_t begin = 0;
    for (std::size_t& count : begins) begin += std::exchange(count, begin);
    for (const std::uint64_t key : keys) sorted[begins[digit(key)]++] = key;
    keys.swap(sorted);
  }
}

}  // namespace

Status check_indices(const Tensor& indices, std::int64_t limit, std::string_view name) {
  Status status;
  with_indices(indices, [&](const auto* at) {
    const std::int64_t n = indices.elements();
    const auto outside = [=](std::int64_t i) { return at[i] < 0 || at[i] >= limit; };
    // A block at a time without branches, which vectorises.
    for (std::int64_t begin = 0; begin < n && status.ok(); begin += kIndexBlock) {
      const std::int64_t end = std::min(n, begin + kIndexBlock);
      unsigned any = 0;
      for (std::int64_t i = begin; i < end; ++i) any |= unsigned(outside(i));
      if (any == 0) continue;
      std::int64_t i = begin;
      while (!outside(i)) ++i;
      status =
          invalid_argument(fmt::format("{}[{}] = {} is outside [0, {})", name, i, at[i], limit));
    }
  });
  return status;
}

bool begins_with(const PartialShape& data, const PartialShape& first) {
  if (first.rank() > data.rank()) return false;
  for (int d = 0; d < first.rank(); ++d)
    if (data.known(d) && first.known(d) && data.dim(d) != first.dim(d)) return false;
  return true;
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
  const auto n = std::size_t(indices.elements());
  std::vector<std::int64_t> order(n);
  with_indices(indices, [&](const auto* at) {
    const std::uint64_t most = n == 0 ? 0 : std::uint64_t(*std::max_element(at, at + n));
    if ((most | n) >> kNumberBits != 0) {
      std::iota(order.begin(), order.end(), std::int64_t{0});
      return std::stable_sort(order.begin(), order.end(),
                              [at](std::int64_t a, std::int64_t b) { return at[a] < at[b]; });
    }
    std::vector<std::uint64_t> keys(n);
    for (std::size_t i = 0; i < n; ++i) keys[i] = std::uint64_t(at[i]) << kNumberBits | i;
    sort_by_digits(keys, most);
    for (std::size_t i = 0; i < n; ++i) order[i] = std::int64_t(keys[i] & 0xffffffff);
  });
  return order;
}

}  // namespace troupe
