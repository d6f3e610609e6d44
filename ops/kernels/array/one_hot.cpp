// OneHot: a row for each index, with one element set.
#include <fmt/core.h>

#include "ops/cuda/device_kernel.hpp"
#include "ops/cuda/element_types.hpp"
#include "ops/cuda/launch.hpp"
#include "ops/device/arguments.hpp"
#include "ops/kernels/support/args.hpp"
#include "ops/kernels/support/indices.hpp"

using namespace troupe;

namespace {

Status one_hot_shape(InferenceContext& c) {
  if (c.int_attr("depth") < 0) return invalid_argument("depth must not be negative");
  for (const char* name : {"on", "off"})
    TROUPE_TRY(check_number(name, c.float_attr(name), c.type_attr("T")));
  if (!c.shape(0).known_rank()) return ok_status();
  TROUPE_TRY(PartialShape shape, append(c.shape(0), PartialShape{c.int_attr("depth")}, 0));
  c.set(0, std::move(shape));
  return ok_status();
}
template <class T>
struct OneHot final : Kernel {
  explicit OneHot(const KernelSpec& s)
      : depth(s.int_attr("depth")),
        on(T(Compute<T>(s.float_attr("on")))),
        off(T(Compute<T>(s.float_attr("off")))) {}
  Status compute(KernelContext& ctx) override {
    const Tensor& indices = ctx.input(0);
    TROUPE_TRY(PartialShape dims, append(indices.shape(), PartialShape{depth}, 0));
    TROUPE_TRY(Shape shape, Shape::make(dims.dims()));
    TROUPE_TRY(Tensor y, ctx.allocate(dtype_of<T>, shape));
    T* out = y.mutable_data<T>();
    std::fill_n(out, y.elements(), off);
    for (std::int64_t i = 0; i < indices.elements(); ++i) {
      const std::int64_t at = indices.dtype() == DType::i32 ? indices.data<std::int32_t>()[i]
                                                            : indices.data<std::int64_t>()[i];
      if (at >= 0 && at < depth) out[i * depth + at] = on;
    }
    ctx.set_output(0, std::move(y));
    return ok_status();
  }
  std::int64_t depth;
  T on, off;
};

class OneHotOnGpu final : public cuda::DeviceKernel {
 public:
  explicit OneHotOnGpu(const KernelSpec& s)
      : dtype_(s.type()),
        depth_(s.int_attr("depth")),
        on_(s.float_attr("on")),
        off_(s.float_attr("off")),
        function_{cuda::device_type(
            "OneHot", {cuda::element_type(dtype_), cuda::element_type(s.type("Tindex"))})} {}
  std::span<cuda::GpuFunction> functions() override { return {&function_, 1}; }
  Status compute(KernelContext& ctx) override {
    const Tensor& indices = ctx.input(0);
    TROUPE_TRY(PartialShape dims, append(indices.shape(), PartialShape{depth_}, 0));
    TROUPE_TRY(Shape shape, Shape::make(dims.dims()));
    TROUPE_TRY(Tensor y, ctx.allocate(dtype_, shape));
    device::OneHotArgs args{indices.raw(), y.mutable_raw(), y.elements(), depth_, on_, off_};
    if (args.n != 0) TROUPE_TRY(launch(ctx, function_, cuda::grid_for(args.n), &args));
    ctx.set_output(0, std::move(y));
    return ok_status();
  }

 private:
  DType dtype_;
  std::int64_t depth_;
  double on_, off_;
  cuda::GpuFunction function_;
};

}  // namespace

TROUPE_OPS(one_hot) {
  r.add({.name = "OneHot",
         .in = {"indices: Tindex"},
         .out = {"y"},
         .types = kNumbersAndBool,
         .attrs = {"T: type = f32", "Tindex: type {i32 i64} = i64", "depth: int", "on: float = 1.0",
                   "off: float = 0.0"},
         .shape = one_hot_shape,
         .no_gradient = "computed of integers",
         .doc = "Adds a last dimension of size `depth`: `on` at the index, `off` elsewhere. An "
                "index out of range gives `off` everywhere."})
      .cpu(typed_kernel<OneHot, NumbersAndBool>)
      .cuda(make_kernel<OneHotOnGpu>);
}
