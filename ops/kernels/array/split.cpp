// Split: a tensor cut into parts.
#include <fmt/core.h>

#include "ops/cuda/strided.hpp"
#include "ops/kernels/support/args.hpp"
#include "ops/kernels/support/joins.hpp"
#include "ops/kernels/support/types.hpp"

using namespace troupe;

namespace {

// The sizes of the parts along the axis, from a total that may be unknown.
Expected<std::vector<std::int64_t>> part_sizes(const std::vector<std::int64_t>& sizes,
                                               std::int64_t n, std::int64_t total) {
  if (sizes.empty()) {
    if (n < 1 || (total >= 0 && total % n != 0))
      return invalid_argument(fmt::format("cannot split {} into {} equal parts", total, n));
    return std::vector<std::int64_t>(std::size_t(n), total < 0 ? -1 : total / n);
  }
  std::int64_t sum = 0;
  bool fits = std::int64_t(sizes.size()) == n;
  for (std::int64_t s : sizes) fits = fits && s >= 0 && !__builtin_add_overflow(sum, s, &sum);
  if (!fits || (total >= 0 && sum != total))
    return invalid_argument(
        fmt::format("{} sizes, sum {}, for {} parts of {}", sizes.size(), sum, n, total));
  return sizes;
}
Status split_shape(InferenceContext& c) {
  const PartialShape& x = c.shape(0);
  if (!x.known_rank()) return part_sizes(c.ints_attr("sizes"), c.int_attr("N"), -1).status();
  TROUPE_TRY(int axis, c.axis(c.int_attr("axis"), x.rank()));
  TROUPE_TRY(auto sizes, part_sizes(c.ints_attr("sizes"), c.int_attr("N"), x.dim(axis)));
  for (int i = 0; i < c.outputs(); ++i) {
    PartialShape part = x;
    part.set_dim(axis, sizes[std::size_t(i)]);
    c.set(i, std::move(part));
  }
  return ok_status();
}
struct Split final : Kernel {
  explicit Split(const KernelSpec& s)
      : axis(s.int_attr("axis")), n(s.int_attr("N")), sizes(s.ints_attr("sizes")) {}
  Status compute(KernelContext& ctx) override {
    const Shape& x = ctx.input(0).shape();
    TROUPE_TRY(int a, checked_axis(axis, x.rank()));
    TROUPE_TRY(auto parts, part_sizes(sizes, n, x.dim(a)));
    std::vector<Shape> shapes(parts.size(), x);
    std::vector<std::int64_t> widths;
    for (std::size_t p = 0; p < parts.size(); ++p) {
      shapes[p].set_dim(a, parts[p]);
      widths.push_back(shapes[p].elements(a, x.rank()));
    }
    return take_apart(ctx, shapes, a, widths);
  }
  std::int64_t axis, n;
  std::vector<std::int64_t> sizes;
};
void split_ints(InferenceContext& c) {
  const KnownInts* x = c.known_ints(0);
  if (!x || x->scalar) return;
  auto first = x->elements.begin();
  for (int i = 0; i < c.outputs(); ++i) {
    const PartialShape& part = c.result()[std::size_t(i)];
    if (!part.fully_known() || part.rank() != 1 || part.dim(0) > x->elements.end() - first) return;
    c.set_ints(i, {false, {first, first + std::ptrdiff_t(part.dim(0))}});
    first += std::ptrdiff_t(part.dim(0));
  }
}
std::vector<Output> split_grad(GradContext& c) {
  return {c.g.add(NodeSpec{.op = "Concat", .inputs = c.dy, .attrs = {{"axis", c.int_attr("axis")}}})
              .output()};
}

}  // namespace

TROUPE_OPS(split) {
  r.add({.name = "Split",
         .in = {"x"},
         .out = {"parts: T..."},
         .types = kAllTypes,
         .attrs = {"axis: int = 0", "N: int", "sizes: list(int) = []"},
         .shape = split_shape,
         .value = split_ints,
         .grad = split_grad,
         .doc = "x split along `axis` into N parts, of equal size or of the given sizes."})
      .cpu(make_kernel<Split>)
      .cuda(cuda::moving<make_kernel<Split>>, kPlainTypes);
}
