// ArgMax and ArgMin: where along one dimension the extreme value first stands.
#include "ops/kernels/args.hpp"
#include "ops/kernels/elementwise.hpp"

using namespace troupe;

namespace {

Expected<PartialShape> without(const PartialShape& x, std::int64_t axis) {
  if (!x.known_rank()) return PartialShape::unknown();
  TROUPE_TRY(int a, checked_axis(axis, x.rank()));
  if (x.dim(a) == 0)
    return invalid_argument(fmt::format("dimension {} of {} has no elements", a, x.text()));
  auto dims = x.dims();
  dims.erase(dims.begin() + a);
  return PartialShape::make(dims);
}
Status arg_shape(InferenceContext& c) {
  TROUPE_TRY(PartialShape shape, without(c.shape(0), c.int_attr("axis")));
  c.set(0, std::move(shape));
  return ok_status();
}

template <bool Max>
struct Arg {
  template <class T>
  struct K final : Kernel {
    explicit K(const KernelSpec& s) : axis(s.int_attr("axis")) {}
    Status compute(KernelContext& ctx) override {
      const Tensor& x = ctx.input(0);
      TROUPE_TRY(PartialShape shape, without(x.shape(), axis));
      TROUPE_TRY(int a, checked_axis(axis, x.rank()));
      TROUPE_TRY(Tensor y, ctx.allocate(DType::i64, shape.shape()));
      const std::int64_t count = x.dim(a), inner = x.shape().elements(a + 1, x.rank());
      std::int64_t* out = y.mutable_data<std::int64_t>();
      const Chunks chunks = row_chunks(y.elements(), count);
      if (chunks.count != 0)
        ctx.parallel(chunks.count, [&](std::int64_t c) {
          for (std::int64_t k = chunks[c].begin; k < chunks[c].end; ++k)
            out[k] = first(x.data<T>() + k / inner * count * inner + k % inner, count, inner);
        });
      ctx.set_output(0, std::move(y));
      return ok_status();
    }
    // A NaN is more extreme than any number.
    static std::int64_t first(const T* x, std::int64_t count, std::int64_t step) {
      using C = Compute<T>;
      std::int64_t at = 0;
      C best = C(x[0]);
      for (std::int64_t i = 1; i < count && best == best; ++i) {
        const C v = C(x[i * step]);
        if ((Max ? v > best : v < best) || v != v) {
          best = v;
          at = i;
        }
      }
      return at;
    }
    std::int64_t axis;
  };
};
OpDef arg(std::string name, std::string what) {
  return {.name = std::move(name),
          .in = {"x"},
          .out = {"index: i64"},
          .types = kNumbers,
          .attrs = {"axis: int = -1"},
          .shape = arg_shape,
          .no_gradient = true,
          .doc = "The position along `axis` of the first " + what +
                 "; of the first NaN if there "
                 "is one. The dimension goes; it must not be empty."};
}

}  // namespace

TROUPE_OPS(arg_max) {
  r.add(arg("ArgMax", "maximum")).cpu(typed_kernel<Arg<true>::K, Numbers>);
  r.add(arg("ArgMin", "minimum")).cpu(typed_kernel<Arg<false>::K, Numbers>);
}
