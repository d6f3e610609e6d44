// Where: the places of what is true.
#include <fmt/core.h>

#include "ops/kernels/support/args.hpp"
#include "ops/kernels/support/elementwise.hpp"
#include "ops/kernels/support/types.hpp"

using namespace troupe;

namespace {

Status places_shape(InferenceContext& c) {
  c.set(0, c.shape(0).known_rank() ? PartialShape{PartialShape::kUnknown, c.shape(0).rank()}
                                   : PartialShape::unknown_of_rank(2));
  return ok_status();
}

template <class T>
struct Where final : Kernel {
  static bool holds(T x) { return Compute<T>(x) != Compute<T>(0); }

  // Counted by chunk, then written where the chunks before end.
  Status compute(KernelContext& ctx) override {
    const Tensor& x = ctx.input(0);
    const Shape shape = x.shape();
    const T* in = x.data<T>();
    const Chunks chunks = elementwise_chunks(x.elements());
    std::vector<std::int64_t> begins(std::size_t(chunks.count + 1), 0);
    if (chunks.count != 0)
      ctx.parallel(chunks.count, [&](std::int64_t c) {
        std::int64_t n = 0;
        for (std::int64_t i = chunks[c].begin; i < chunks[c].end; ++i) n += holds(in[i]) ? 1 : 0;
        begins[std::size_t(c + 1)] = n;
      });
    for (std::size_t c = 1; c < begins.size(); ++c) begins[c] += begins[c - 1];
    const int rank = shape.rank();
    TROUPE_TRY(Tensor y, ctx.allocate(DType::i64, Shape{begins.back(), rank}));
    std::int64_t* out = y.mutable_data<std::int64_t>();
    if (y.elements() != 0)
      ctx.parallel(chunks.count, [&](std::int64_t c) {
        std::int64_t* to = out + begins[std::size_t(c)] * rank;
        for (std::int64_t i = chunks[c].begin; i < chunks[c].end; ++i) {
          if (!holds(in[i])) continue;
          std::int64_t rest = i;
          for (int d = rank; d-- > 0;) {
            to[d] = rest % shape.dim(d);
            rest /= shape.dim(d);
          }
          to += rank;
        }
      });
    ctx.set_output(0, std::move(y));
    return ok_status();
  }
};

}  // namespace

TROUPE_OPS(where) {
  r.add({.name = "Where",
         .in = {"condition"},
         .out = {"indices: i64"},
         .types = kNumbersAndBool,
         .shape = places_shape,
         .no_gradient = "indices",
         .doc = "The indices of all elements that are true or nonzero, in order: [n, rank], where "
                "n is known only in the run. A NaN is nonzero. GatherNd takes such indices."})
      // Not on devices that want to know shapes before a kernel has run.
      .on("CPU", typed_kernel<Where, NumbersAndBool>);
}
