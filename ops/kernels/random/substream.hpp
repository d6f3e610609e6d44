// Numbers that belong to one element of a random tensor: a function of the node's key, the run and
// the element alone, however many of them a rejection method takes, so any lane may draw it.
#pragma once

#include <fmt/core.h>

#include <cmath>
#include <numbers>

#include "ops/kernels/support/elementwise.hpp"

namespace troupe {

// [0, 1): every multiple of 2^-53.
inline double unit_of_words(std::uint32_t low, std::uint32_t high) {
  return double((std::uint64_t{high} << 32 | low) >> 11) * 0x1p-53;
}
// For ops that take one number per element: two elements share a block.
inline double unit_of_element(const RandomState& random, std::int64_t i) {
  const PhiloxBlock b = random.block(std::uint64_t(i / 2));
  return i % 2 == 0 ? unit_of_words(b[0], b[1]) : unit_of_words(b[2], b[3]);
}

// Up to 256 blocks of two numbers each. Whoever rejects gives up long before.
class Substream {
 public:
  Substream(const RandomState& random, std::int64_t element)
      : random_(random), next_(std::uint64_t(element) << 8) {}

  // Two numbers in [0, 1).
  std::array<double, 2> units() {
    const PhiloxBlock b = random_.block(next_++);
    return {unit_of_words(b[0], b[1]), unit_of_words(b[2], b[3])};
  }
  // A normal number. 1 - u keeps the logarithm finite.
  double normal() {
    const auto [u, v] = units();
    return std::sqrt(-2 * std::log(1 - u)) * std::cos(2 * std::numbers::pi * v);
  }

 private:
  const RandomState& random_;
  std::uint64_t next_;
};

// out[i] = draw(parameter, i) for each element, on all lanes. `wrong(parameter)` says what cannot
// be drawn from: the first such element is named in the error.
template <class T, class Out, class Wrong, class Draw>
Status draw_elements(KernelContext& ctx, const char* name, const char* rule, Wrong wrong,
                     Draw draw) {
  const Tensor& x = ctx.input(0);
  const T* from = x.data<T>();
  for (std::int64_t i = 0; i < x.elements(); ++i)
    if (const double v = double(Compute<T>(from[i])); wrong(v))
      return invalid_argument(fmt::format("{}[{}] is {}: it must be {}", name, i, v, rule));
  TROUPE_TRY(Tensor y, ctx.allocate(dtype_of<Out>, x.shape()));
  Out* to = y.mutable_data<Out>();
  for_chunks(ctx, x.elements(), [&](Range r) {
    for (std::int64_t i = r.begin; i < r.end; ++i) to[i] = draw(double(Compute<T>(from[i])), i);
  });
  ctx.set_output(0, std::move(y));
  return ok_status();
}

// What the ops that draw by an input have in common.
inline OpDef drawn_by_input(std::string name, std::string in, std::string out, std::string doc) {
  return {.name = std::move(name),
          .in = {std::move(in)},
          .out = {std::move(out)},
          .types = kFloats,
          .shape = same_shape,
          .no_gradient = "drawn, not computed of inputs",
          .random = true,
          .doc = std::move(doc) +
                 " New values in each run, the same for the same seed, node name and run."};
}

}  // namespace troupe
