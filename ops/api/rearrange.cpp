#include "ops/api/rearrange.hpp"

#include <fmt/format.h>

#include "ops/api/constant.hpp"
#include "ops/api/math.hpp"
#include "ops/api/node.hpp"
#include "ops/api/operators.hpp"

namespace troupe {

namespace {

using Frame = std::vector<std::pair<std::int64_t, std::int64_t>>;

[[noreturn]] void refuse_to_rearrange(std::string what, const Site& site) {
  throw Error(invalid_argument(std::move(what)).at(site));
}

// The shape of x, of at least `rank` dimensions, those from 1 to `known` known.
PartialShape shape_to_rearrange(const char* op, const Output& x, int rank, int known,
                                const Site& site) {
  check_given(fmt::format("{}: x", op).c_str(), x, site);
  const PartialShape shape = x.shape();
  bool fits = shape.known_rank() && shape.rank() >= rank;
  for (int i = 1; fits && i <= known; ++i) fits = shape.known(i);
  if (!fits)
    refuse_to_rearrange(
        fmt::format("{}: x must have {} or more dimensions, and those from 1 to {} must be known, "
                    "not {}",
                    op, rank, known, shape.text()),
        site);
  return shape;
}
PartialShape picture_shape(const char* op, const Output& x, std::int64_t block, const Site& site) {
  const PartialShape shape = shape_to_rearrange(op, x, 4, 3, site);
  if (shape.rank() != 4)
    refuse_to_rearrange(
        fmt::format("{}: x must be [n, height, width, channels], not {}", op, shape.text()), site);
  if (block < 1) refuse_to_rearrange(fmt::format("{}: block is {}", op, block), site);
  return shape;
}
std::int64_t divided(const char* op, std::int64_t size, std::int64_t block, const Site& site) {
  if (block < 1 || size % block != 0)
    refuse_to_rearrange(fmt::format("{}: {} is not divisible by {}", op, size, block), site);
  return size / block;
}
std::int64_t multiplied(const char* op, std::int64_t a, std::int64_t b, const Site& site) {
  std::int64_t product = 0;
  if (__builtin_mul_overflow(a, b, &product))
    refuse_to_rearrange(fmt::format("{}: {} * {} is too large", op, a, b), site);
  return product;
}
// Blocks of dimensions 1, 2, ...: a size each, and a frame each that is not negative.
void check_blocks(const char* op, const std::vector<std::int64_t>& block, const Frame& frame,
                  const Site& site) {
  bool fits = block.size() == frame.size() && 2 * block.size() + 1 <= std::size_t(kMaxRank);
  for (std::int64_t b : block) fits = fits && b >= 1 && b <= INT32_MAX;
  for (const auto& [before, after] : frame) fits = fits && before >= 0 && after >= 0;
  if (!fits)
    refuse_to_rearrange(
        fmt::format("{}: wants a block of 1 or more and a frame of 0 or more for each of at most "
                    "3 dimensions",
                    op),
        site);
}

Output part_along(Output x, int axis, std::int64_t begin, std::int64_t size, const Site& site) {
  std::vector<std::int64_t> from(std::size_t(x.shape().rank()), 0);
  std::vector<std::int64_t> sizes(from.size(), -1);
  from[std::size_t(axis)] = begin;
  sizes[std::size_t(axis)] = size;
  return slice(x, from, sizes, site);
}

}  // namespace

Output mirror_pad(Output x, const Frame& paddings, std::string_view mode, Site site) {
  check_given("mirror_pad: x", x, site);
  if (mode != "reflect" && mode != "symmetric")
    refuse_to_rearrange(
        fmt::format("mirror_pad: mode is \"{}\", not \"reflect\" or \"symmetric\"", mode), site);
  if (!x.shape().known_rank() || std::size_t(x.shape().rank()) != paddings.size())
    refuse_to_rearrange(
        fmt::format("mirror_pad: {} paddings for x {}", paddings.size(), x.shape().text()), site);
  const std::int64_t border = mode == "reflect" ? 1 : 0;
  for (int axis = 0; axis < x.shape().rank(); ++axis) {
    const auto [before, after] = paddings[std::size_t(axis)];
    if (before < 0 || after < 0)
      refuse_to_rearrange(fmt::format("mirror_pad: paddings {} and {}", before, after), site);
    std::vector<Output> parts = {x};
    const Output turned = before == 0 && after == 0 ? Output() : reverse(x, {.axes = {axis}}, site);
    if (before > 0)
      parts.insert(parts.begin(),
                   reverse(part_along(x, axis, border, before, site), {.axes = {axis}}, site));
    if (after > 0) parts.push_back(part_along(turned, axis, border, after, site));
    if (parts.size() > 1) x = concat(parts, {.axis = axis}, site);
  }
  return x;
}

Output space_to_depth(Output x, std::int64_t block, Site site) {
  const char* op = "space_to_depth";
  const PartialShape shape = picture_shape(op, x, block, site);
  const std::int64_t height = divided(op, shape[1], block, site);
  const std::int64_t width = divided(op, shape[2], block, site), depth = shape[3];
  const Output blocks = reshape(x, {shape[0], height, block, width, block, depth}, site);
  return reshape(
      transpose(blocks, {.perm = {0, 1, 3, 2, 4, 5}}, site),
      {shape[0], height, width, multiplied(op, multiplied(op, block, block, site), depth, site)},
      site);
}

Output depth_to_space(Output x, std::int64_t block, Site site) {
  const char* op = "depth_to_space";
  const PartialShape shape = picture_shape(op, x, block, site);
  const std::int64_t height = shape[1], width = shape[2];
  std::int64_t depth = divided(op, shape[3], block, site);
  depth = divided(op, depth, block, site);
  const Output blocks = reshape(x, {shape[0], height, width, block, block, depth}, site);
  return reshape(
      transpose(blocks, {.perm = {0, 1, 3, 2, 4, 5}}, site),
      {shape[0], multiplied(op, height, block, site), multiplied(op, width, block, site), depth},
      site);
}

Output space_to_batch(Output x, const std::vector<std::int64_t>& block, const Frame& paddings,
                      Site site) {
  check_blocks("space_to_batch", block, paddings, site);
  const int m = int(block.size());
  PartialShape shape = shape_to_rearrange("space_to_batch", x, m + 1, m, site);
  Frame frame(std::size_t(shape.rank()), {0, 0});
  std::copy(paddings.begin(), paddings.end(), frame.begin() + 1);
  x = pad(x, frame, {}, site);
  shape = x.shape();
  if (shape.rank() + m > kMaxRank)
    refuse_to_rearrange("space_to_batch: x has too many dimensions: " + shape.text(), site);
  // [n, h, w, ...] as [n, h / b, b, w / c, c, ...], then [b, c, n, h / b, w / c, ...]
  std::vector<std::int64_t> split = {shape[0]}, joined = {-1}, perm;
  std::int64_t blocks = 1;
  for (int i = 0; i < m; ++i) {
    const std::int64_t b = block[std::size_t(i)];
    split.insert(split.end(), {divided("space_to_batch", shape[i + 1], b, site), b});
    joined.push_back(split[split.size() - 2]);
    perm.push_back(2 * i + 2);
    blocks = multiplied("space_to_batch", blocks, b, site);
  }
  perm.push_back(0);
  for (int i = 0; i < m; ++i) perm.push_back(2 * i + 1);
  for (int i = m + 1; i < shape.rank(); ++i) {
    split.push_back(shape[i]);
    joined.push_back(shape[i]);
    perm.push_back(i + m);
  }
  if (shape.known(0)) joined[0] = multiplied("space_to_batch", shape[0], blocks, site);
  return reshape(transpose(reshape(x, split, site), {.perm = perm}, site), joined, site);
}

Output batch_to_space(Output x, const std::vector<std::int64_t>& block, const Frame& crops,
                      Site site) {
  check_blocks("batch_to_space", block, crops, site);
  const int m = int(block.size());
  const PartialShape shape = shape_to_rearrange("batch_to_space", x, m + 1, m, site);
  if (shape.rank() + m > kMaxRank)
    refuse_to_rearrange("batch_to_space: x has too many dimensions: " + shape.text(), site);
  std::int64_t n = shape[0];
  for (std::int64_t b : block)
    if (n >= 0) n = divided("batch_to_space", n, b, site);
  // [b * c * n, h, w, ...] as [b, c, n, h, w, ...], then [n, h, b, w, c, ...]
  std::vector<std::int64_t> split = block, joined = {n}, perm = {m};
  split.push_back(n);
  std::vector<std::int64_t> begin = {0}, size = {-1};
  for (int i = 0; i < m; ++i) {
    const std::int64_t b = block[std::size_t(i)];
    const std::int64_t whole = multiplied("batch_to_space", shape[i + 1], b, site);
    const auto [before, after] = crops[std::size_t(i)];
    if (before > whole || after > whole - before)
      refuse_to_rearrange(
          fmt::format("batch_to_space: crops {} and {} of {}", before, after, whole), site);
    split.push_back(shape[i + 1]);
    joined.push_back(whole);
    perm.insert(perm.end(), {m + 1 + i, i});
    begin.push_back(before);
    size.push_back(whole - before - after);
  }
  for (int i = m + 1; i < shape.rank(); ++i) {
    split.push_back(shape[i]);
    joined.push_back(shape[i]);
    perm.push_back(i + m);
    begin.push_back(0);
    size.push_back(-1);
  }
  const Output whole =
      reshape(transpose(reshape(x, split, site), {.perm = perm}, site), joined, site);
  return slice(whole, begin, size, site);
}

Output clip_by_value(const Operand& x, const Operand& low, const Operand& high, Site site) {
  return minimum(maximum(x, low, site), high, site);
}

}  // namespace troupe
