// ArgMax and ArgMin: where along one dimension the extreme value first stands.
#include <fmt/core.h>

#include <array>

#include "ops/cuda/device_kernel.hpp"
#include "ops/cuda/element_types.hpp"
#include "ops/cuda/launch.hpp"
#include "ops/device/arguments.hpp"
#include "ops/formulas/compare.hpp"
#include "ops/kernels/support/args.hpp"
#include "ops/kernels/support/moves.hpp"
#include "ops/kernels/support/types.hpp"

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

// Where the extreme of `count` elements, `step` apart, first stands. A NaN is more extreme than any
// number.
template <bool Max, class T>
std::int64_t first(const void* data, std::int64_t count, std::int64_t step) {
  using C = Compute<T>;
  const T* x = static_cast<const T*>(data);
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

class Arg final : public Kernel {
 public:
  using First = std::int64_t (*)(const void*, std::int64_t, std::int64_t);
  Arg(const KernelSpec& s, First first) : axis_(s.int_attr("axis")), first_(first) {}
  Status compute(KernelContext& ctx) override {
    const Tensor& x = ctx.input(0);
    TROUPE_TRY(PartialShape shape, without(x.shape(), axis_));
    TROUPE_TRY(int a, checked_axis(axis_, x.rank()));
    TROUPE_TRY(Tensor y, ctx.allocate(DType::i64, shape.shape()));
    const std::int64_t count = x.dim(a), inner = x.shape().elements(a + 1, x.rank());
    std::int64_t* out = y.mutable_data<std::int64_t>();
    const Moves moves(x.dtype());
    const Chunks chunks = row_chunks(y.elements(), count);
    if (chunks.count != 0)
      ctx.parallel(chunks.count, [&](std::int64_t c) {
        for (std::int64_t k = chunks[c].begin; k < chunks[c].end; ++k)
          out[k] = first_(moves.at(x.raw(), k / inner * count * inner + k % inner), count, inner);
      });
    ctx.set_output(0, std::move(y));
    return ok_status();
  }

 private:
  std::int64_t axis_;
  First first_;
};
template <bool Max>
Expected<std::unique_ptr<Kernel>> make_arg(const KernelSpec& spec) {
  return dispatch<Expected<std::unique_ptr<Kernel>>>(Numbers{}, spec.type(), [&](auto tag) {
    return std::unique_ptr<Kernel>(new Arg(spec, first<Max, typename decltype(tag)::type>));
  });
}

template <class More>
class ArgOnGpu final : public cuda::DeviceKernel {
 public:
  explicit ArgOnGpu(const KernelSpec& s)
      : axis_(s.int_attr("axis")),
        functions_{function("ArgExtreme", s.type()), function("ArgExtremeOfRows", s.type())} {}
  std::span<cuda::GpuFunction> functions() override { return functions_; }
  Status compute(KernelContext& ctx) override {
    const Tensor& x = ctx.input(0);
    TROUPE_TRY(PartialShape shape, without(x.shape(), axis_));
    TROUPE_TRY(int a, checked_axis(axis_, x.rank()));
    TROUPE_TRY(Tensor y, ctx.allocate(DType::i64, shape.shape()));
    const std::int64_t inner = x.shape().elements(a + 1, x.rank()), n = y.elements();
    if (n != 0) {
      device::ReduceArgs args{x.raw(), y.mutable_raw(), n / inner, x.dim(a), inner};
      const bool by_rows = inner == 1 && x.dim(a) > cuda::kFew;
      TROUPE_TRY(launch(ctx, functions_[by_rows],
                        by_rows ? cuda::block_for_each(n) : cuda::grid_for(n), &args));
    }
    ctx.set_output(0, std::move(y));
    return ok_status();
  }

 private:
  static cuda::GpuFunction function(const char* name, DType dtype) {
    return {cuda::device_type(name, {cuda::name_of(typeid(More)), cuda::element_type(dtype)})};
  }

  std::int64_t axis_;
  std::array<cuda::GpuFunction, 2> functions_;
};

OpDef arg(std::string name, std::string what) {
  return {.name = std::move(name),
          .in = {"x"},
          .out = {"index: i64"},
          .types = kNumbers,
          .attrs = {"axis: int = -1"},
          .shape = arg_shape,
          .no_gradient = "an index",
          .doc = "The position along `axis` of the first " + what +
                 ", or of the first NaN if there is one. That dimension is removed; it must not be "
                 "empty."};
}

}  // namespace

TROUPE_OPS(arg_max) {
  r.add(arg("ArgMax", "maximum")).cpu(make_arg<true>).cuda(make_kernel<ArgOnGpu<formula::Greater>>);
  r.add(arg("ArgMin", "minimum")).cpu(make_arg<false>).cuda(make_kernel<ArgOnGpu<formula::Less>>);
}
