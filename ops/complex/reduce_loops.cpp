#include "ops/complex/reduce_loops.hpp"

#include <bit>
#include <complex>
#include <limits>

namespace troupe {
namespace {

struct SumOf {
  static constexpr int kStart = 0;
  auto operator()(auto a, auto b) const { return a + b; }
};
// A product with 1 is not computed: of an infinite number it would be NaN.
struct ProductOf {
  static constexpr int kStart = 1;
  template <class Z>
  Z operator()(Z a, Z b) const {
    return a == Z(1) ? b : b == Z(1) ? a : a * b;
  }
};

// Element i is a part of partial result i modulo 8, which does not wait for the one before.
template <class Op, class Z>
void leaves(const void* x, std::int64_t n, std::int64_t count, void* sums) {
  constexpr std::int64_t kParts = 8;
  const Z* in = static_cast<const Z*>(x);
  for (std::int64_t row = 0; row < count; ++row, in += n) {
    Z parts[kParts];
    std::fill_n(parts, kParts, Z(Op::kStart));
    std::int64_t i = 0;
    for (; i + kParts <= n; i += kParts)
      for (std::int64_t k = 0; k < kParts; ++k) parts[k] = Op()(parts[k], in[i + k]);
    for (std::int64_t k = 0; i < n; ++i, ++k) parts[k] = Op()(parts[k], in[i]);
    tree_sum(kParts, [&](std::int64_t a, std::int64_t b) { parts[a] = Op()(parts[a], parts[b]); });
    static_cast<Z*>(sums)[row] = parts[0];
  }
}
template <class Op, class Z>
void add(void* sums, const void* x, std::int64_t n, std::int64_t rows) {
  Z* sum = static_cast<Z*>(sums);
  const Z* in = static_cast<const Z*>(x);
  for (std::int64_t row = 0; row < rows; ++row, in += n)
    for (std::int64_t i = 0; i < n; ++i) sum[i] = Op()(sum[i], in[i]);
}
template <class Z>
void mean(void* sums, std::int64_t n, std::int64_t count) {
  using R = typename Z::value_type;
  constexpr R nan = std::numeric_limits<R>::quiet_NaN();
  Z* sum = static_cast<Z*>(sums);
  for (std::int64_t i = 0; i < n; ++i) sum[i] = count == 0 ? Z(nan, nan) : sum[i] / R(count);
}

template <class Op, class Z, bool means = false>
constexpr ReduceLoops loops() {
  using R = typename Z::value_type;
  ReduceLoops of{dtype_of<Z>, dtype_of<Z>, leaves<Op, Z>, add<Op, Z>};
  if (means) of.finish = mean<Z>;
  const auto start = std::bit_cast<std::array<std::byte, sizeof(R)>>(R(Op::kStart));
  for (std::size_t i = 0; i < sizeof(R); ++i) of.start[i] = start[i];
  return of;
}
template <class Op, bool means = false>
constexpr ReduceLoops kBoth[] = {loops<Op, std::complex<float>, means>(),
                                 loops<Op, std::complex<double>, means>()};

}  // namespace

std::span<const ReduceLoops> complex_sums() { return kBoth<SumOf>; }
std::span<const ReduceLoops> complex_means() { return kBoth<SumOf, true>; }
std::span<const ReduceLoops> complex_products() { return kBoth<ProductOf>; }

}  // namespace troupe
