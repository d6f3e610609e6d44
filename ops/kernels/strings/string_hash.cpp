// StringHash: texts as numbers below a bound.
#include <fmt/core.h>

#include "core/hash.hpp"
#include "ops/kernels/support/args.hpp"
#include "ops/kernels/support/types.hpp"

using namespace troupe;

namespace {

Status string_hash_shape(InferenceContext& c) {
  if (c.int_attr("buckets") < 1)
    return invalid_argument(
        fmt::format("buckets is {}; there must be one at least", c.int_attr("buckets")));
  c.set(0, c.shape(0));
  return ok_status();
}

struct StringHash final : Kernel {
  explicit StringHash(const KernelSpec& s)
      : buckets(std::uint64_t(s.int_attr("buckets"))), seed(std::uint64_t(s.int_attr("seed"))) {}
  Status compute(KernelContext& ctx) override {
    const Tensor& x = ctx.input(0);
    TROUPE_TRY(Tensor y, ctx.allocate(DType::i64, x.shape()));
    for (std::int64_t i = 0; i < x.elements(); ++i)
      y.mutable_data<std::int64_t>()[i] =
          std::int64_t(hash_text(x.data<std::string>()[i], seed) % buckets);
    ctx.set_output(0, std::move(y));
    return ok_status();
  }
  std::uint64_t buckets, seed;
};

}  // namespace

TROUPE_OPS(string_hash) {
  r.add({.name = "StringHash",
         .in = {"x: string"},
         .out = {"y: i64"},
         .attrs = {"buckets: int", "seed: int = 0"},
         .shape = string_hash_shape,
         .no_gradient = "text",
         .doc = "The hash of each string in x as a number in [0, buckets), the same in every "
                "program and on every machine. Different strings may have the same number."})
      .cpu(make_kernel<StringHash>);
}
