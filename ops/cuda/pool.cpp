#include "ops/cuda/pool.hpp"

#include "ops/cuda/device_kernel.hpp"
#include "ops/cuda/element_types.hpp"
#include "ops/cuda/launch.hpp"
#include "ops/device/arguments.hpp"
#include "ops/kernels/nn/pool.hpp"

namespace troupe::cuda {
namespace {

device::PoolAxis axis_of(const WindowAxis& a) {
  return {a.in, a.out, a.size, a.stride, a.pad_before};
}

class Pool final : public DeviceKernel {
 public:
  Pool(const KernelSpec& spec, const WindowAttrs& window)
      : op_(spec.node.op),
        dtype_(spec.type()),
        window_(window),
        function_{device_type(op_.c_str(), {element_type(dtype_)})} {}

  std::span<GpuFunction> functions() override { return {&function_, 1}; }

  Status compute(KernelContext& ctx) override {
    const bool by_sizes = op_ == "AvgPoolGrad";
    Shape image = ctx.input(0).shape();
    if (by_sizes) {
      TROUPE_TRY(image, shape_operand(ctx.input(0)));
    }
    TROUPE_TRY(const PoolShape p, pool_shape(window_, image));
    const Shape pooled = pooled_shape(p);
    // What stands behind x, or in its place, is as long as y, but for what is picked from.
    for (int i = 1; i < ctx.inputs(); ++i) {
      const Shape& wanted = op_ == "MaxPoolPick" && i == 2 ? image : pooled;
      if (ctx.input(i).shape() != wanted)
        return invalid_argument("input " + std::to_string(i) + " is " +
                                ctx.input(i).shape().text() + ", but the pool wants " +
                                wanted.text());
    }
    const bool gradient = by_sizes || op_ == "MaxPoolGrad";
    TROUPE_TRY(Tensor to, ctx.allocate(dtype_, gradient ? image : pooled));
    device::PoolArgs args{};
    if (!by_sizes) args.x = ctx.input(0).raw();
    if (ctx.inputs() == 3) args.y = ctx.input(1).raw();
    if (ctx.inputs() > 1) args.from = ctx.input(ctx.inputs() - 1).raw();
    args.to = to.mutable_raw();
    args.elements = to.elements();
    args.channels = p.channels;
    args.h = axis_of(p.h), args.w = axis_of(p.w);
    if (args.elements != 0) TROUPE_TRY(launch(ctx, function_, grid_for(args.elements), &args));
    ctx.set_output(0, std::move(to));
    return ok_status();
  }

 private:
  const std::string op_;
  const DType dtype_;
  const WindowAttrs window_;
  GpuFunction function_;
};

}  // namespace

Expected<std::unique_ptr<Kernel>> pool(const KernelSpec& spec) {
  TROUPE_TRY(const WindowAttrs window, read_window(spec, true));
  return std::unique_ptr<Kernel>(new Pool(spec, window));
}

}  // namespace troupe::cuda
