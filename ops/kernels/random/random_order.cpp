// RandomOrder: permutations, which shuffle rows.
#include <numeric>

#include "ops/kernels/random/substream.hpp"

using namespace troupe;

namespace {

Status random_order_shape(InferenceContext& c) {
  TROUPE_TRY(c.want_rank_at_least(0, 1));
  if (c.shape(0).known_rank()) {
    TROUPE_TRY(PartialShape y, PartialShape::make(std::span(c.shape(0).dims()).first(1)));
    c.set(0, std::move(y));
  } else {
    c.set(0, PartialShape::unknown_of_rank(1));
  }
  return ok_status();
}
// Fisher and Yates, from the last place on.
Status random_order(KernelContext& ctx) {
  const Tensor& x = ctx.input(0);
  if (x.rank() == 0) return invalid_argument("like must have rank 1 or more, not []");
  TROUPE_TRY(Tensor y, ctx.allocate(DType::i64, Shape{x.dim(0)}));
  std::int64_t* to = y.mutable_data<std::int64_t>();
  const RandomState random = ctx.random();
  std::iota(to, to + y.elements(), std::int64_t{0});
  for (std::int64_t i = y.elements() - 1; i > 0; --i) {
    const PhiloxBlock b = random.block(std::uint64_t(i));
    const std::uint64_t word = std::uint64_t{b[1]} << 32 | b[0];
    const auto at = std::int64_t(static_cast<unsigned __int128>(word) * std::uint64_t(i + 1) >> 64);
    std::swap(to[i], to[at]);
  }
  ctx.set_output(0, std::move(y));
  return ok_status();
}

}  // namespace

TROUPE_OPS(random_order) {
  OpDef def = drawn_by_input("RandomOrder", "like", "order: i64",
                             "A random permutation of 0, 1, ..., n - 1, where n is the first "
                             "dimension of `like`: indices for Gather.");
  def.types = kAllTypes;
  def.shape = random_order_shape;
  r.add(std::move(def)).cpu(kernel<random_order>);
}
