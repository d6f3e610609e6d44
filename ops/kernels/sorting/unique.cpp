// Unique: each value once, in the order of their first appearance.
#include <fmt/core.h>

#include <algorithm>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "core/hash.hpp"
#include "ops/kernels/support/args.hpp"
#include "ops/kernels/support/indices.hpp"
#include "ops/kernels/support/moves.hpp"
#include "ops/kernels/support/order.hpp"

using namespace troupe;

namespace {

Status unique_shape(InferenceContext& c) {
  TROUPE_TRY(c.want_rank(0, 1));
  c.set(0, PartialShape::unknown_of_rank(1));
  c.set(1, c.shape(0).known_rank() ? c.shape(0) : PartialShape::unknown_of_rank(1));
  c.set(2, PartialShape::unknown_of_rank(1));
  return ok_status();
}

// For each element the place of the first one that equals it, by a hash table of first places that
// is at most half full. False if so many values collide that
// sorting takes less time.
bool hash_places(const std::vector<Ranked>& elements, std::vector<std::int64_t>& first) {
  std::vector<std::int64_t> table(1024, -1);
  std::size_t used = 0, steps = 16 * elements.size();
  const auto slot_of = [&](std::uint64_t key) {
    std::size_t slot = mix64(key) & (table.size() - 1);
    for (; table[slot] >= 0 && elements[std::size_t(table[slot])].key != key; --steps) {
      if (steps == 0) return table.size();
      slot = (slot + 1) & (table.size() - 1);
    }
    return slot;
  };
  for (std::size_t i = 0; i < elements.size(); ++i) {
    const std::size_t slot = slot_of(elements[i].key);
    if (slot == table.size()) return false;
    if (table[slot] >= 0) {
      first[i] = table[slot];
      continue;
    }
    first[i] = table[slot] = std::int64_t(i);
    if (2 * ++used <= table.size()) continue;
    const std::vector<std::int64_t> before =
        std::exchange(table, std::vector<std::int64_t>(2 * table.size(), -1));
    for (const std::int64_t place : before) {
      if (place < 0) continue;
      const std::size_t to = slot_of(elements[std::size_t(place)].key);
      if (to == table.size()) return false;
      table[to] = place;
    }
  }
  return true;
}

// The same for all types, by sorting where hashing is no good.
std::vector<std::int64_t> first_places(const Tensor& x) {
  std::vector<std::int64_t> first(std::size_t(x.elements()));
  if (x.dtype() == DType::string) {
    std::unordered_map<std::string_view, std::int64_t> seen;
    const std::string* text = x.data<std::string>();
    for (std::size_t i = 0; i < first.size(); ++i)
      first[i] = seen.emplace(text[i], std::int64_t(i)).first->second;
    return first;
  }
  std::vector<Ranked> order(first.size());
  rank_elements(x, 0, 1, false, order);
  if (hash_places(order, first)) return first;
  std::sort(order.begin(), order.end());
  for (std::size_t i = 0, begin = 0; i < order.size(); ++i) {
    if (order[i].key != order[begin].key) begin = i;
    first[std::size_t(order[i].at)] = order[begin].at;
  }
  return first;
}

Status unique(KernelContext& ctx) {
  const Tensor& x = ctx.input(0);
  if (x.rank() != 1) return invalid_argument("x must have rank 1, not " + x.shape().text());
  const std::vector<std::int64_t> first = first_places(x);
  TROUPE_TRY(Tensor index, ctx.allocate(DType::i64, x.shape()));
  std::int64_t* at = index.mutable_data<std::int64_t>();
  std::vector<std::int64_t> kept, count;
  for (std::size_t i = 0; i < first.size(); ++i) {
    if (first[i] == std::int64_t(i)) {
      at[i] = std::int64_t(kept.size());
      kept.push_back(std::int64_t(i));
      count.push_back(0);
    } else {
      at[i] = at[first[i]];
    }
    ++count[std::size_t(at[i])];
  }
  const Shape found{std::int64_t(kept.size())};
  TROUPE_TRY(Tensor y, ctx.allocate(x.dtype(), found));
  TROUPE_TRY(Tensor counts, ctx.allocate(DType::i64, found));
  std::copy(count.begin(), count.end(), counts.mutable_data<std::int64_t>());
  const Moves moves(x.dtype());
  const void* from = x.raw();
  void* to = y.mutable_raw();
  for (std::size_t i = 0; i < kept.size(); ++i)
    moves.copy(moves.at(from, kept[i]), 1, moves.at(to, std::int64_t(i)));
  ctx.set_output(0, std::move(y));
  ctx.set_output(1, std::move(index));
  ctx.set_output(2, std::move(counts));
  return ok_status();
}

}  // namespace

TROUPE_OPS(unique) {
  r.add({.name = "Unique",
         .in = {"x"},
         .out = {"y", "index: i64", "counts: i64"},
         .types = "f32 f64 f16 bf16 i8 i16 i32 i64 u8 u16 u32 u64 bool string",
         .shape = unique_shape,
         .no_gradient = "which elements are equal",
         .doc =
             "The distinct values of a vector, in the order of their first occurrence: x[i] = "
             "y[index[i]], and y[j] occurs counts[j] times. All NaN are one value, as in NumPy; -0 "
             "equals 0."})
      // Not on devices that want to know shapes before a kernel has run.
      .on("CPU", kernel<unique>);
}
