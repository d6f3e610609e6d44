// Transpose: dimensions in another order.
#include <fmt/core.h>

#include "ops/cuda/strided.hpp"
#include "ops/kernels/support/args.hpp"
#include "ops/kernels/support/grad.hpp"
#include "ops/kernels/support/types.hpp"
#include "ops/kernels/support/views.hpp"

using namespace troupe;

namespace {

using Ints = std::vector<std::int64_t>;

// An empty perm reverses the dimensions.
Expected<Ints> checked_perm(Ints perm, int rank) {
  if (perm.empty())
    for (int i = rank - 1; i >= 0; --i) perm.push_back(i);
  if (perm.size() != std::size_t(rank)) return wrong_length("perm", perm.size(), rank);
  std::vector<bool> seen(perm.size());
  for (std::int64_t& p : perm) {
    TROUPE_TRY(p, checked_axis(p, rank));
    if (seen[std::size_t(p)])
      return invalid_argument(fmt::format("perm names dimension {} twice", p));
    seen[std::size_t(p)] = true;
  }
  return perm;
}
Status transpose_shape(InferenceContext& c) {
  const PartialShape& x = c.shape(0);
  const Ints& given = c.ints_attr("perm");
  if (!x.known_rank() && given.empty()) return ok_status();
  if (given.size() > std::size_t(kMaxRank)) return wrong_length("perm", given.size(), kMaxRank);
  const int rank = x.known_rank() ? x.rank() : int(given.size());
  TROUPE_TRY(Ints perm, checked_perm(given, rank));  // which the gradient relies on
  PartialShape y = PartialShape::unknown_of_rank(rank);
  if (!x.known_rank()) return c.set(0, std::move(y)), ok_status();
  for (int i = 0; i < x.rank(); ++i) y.set_dim(i, x.dim(int(perm[std::size_t(i)])));
  c.set(0, std::move(y));
  return ok_status();
}
struct Transpose final : Kernel {
  explicit Transpose(const KernelSpec& s) : perm(s.ints_attr("perm")) {}
  Status compute(KernelContext& ctx) override {
    const Shape& x = ctx.input(0).shape();
    TROUPE_TRY(Ints order, checked_perm(perm, x.rank()));
    const Strides from = strides_of(x);
    Strides strides{};
    Shape y = x;
    for (std::size_t i = 0; i < order.size(); ++i) {
      y.set_dim(int(i), x.dim(int(order[i])));
      strides[i] = from[std::size_t(order[i])];
    }
    return view_copy(ctx, y, strides, 0);
  }
  Ints perm;
};
std::vector<Output> transpose_grad(GradContext& c) {
  const Ints& perm = c.ints_attr("perm");
  Ints inverse(perm.size());
  const auto rank = std::int64_t(perm.size());
  for (std::size_t i = 0; i < perm.size(); ++i)
    inverse[std::size_t(perm[i] < 0 ? perm[i] + rank : perm[i])] = std::int64_t(i);
  return {c.g.add("Transpose", {c.dy[0]}, {{"perm", inverse}})};
}

}  // namespace

TROUPE_OPS(transpose) {
  r.add({.name = "Transpose",
         .in = {"x"},
         .out = {"y"},
         .types = kAllTypes,
         .attrs = {"perm: list(int) = []"},
         .shape = transpose_shape,
         .grad = transpose_grad,
         .doc = "Dimension i of the result is dimension perm[i] of x; without perm, the dimensions "
                "in reverse order."})
      .cpu(make_kernel<Transpose>)
      .cuda(cuda::moving<make_kernel<Transpose>>, kPlainTypes);
}
