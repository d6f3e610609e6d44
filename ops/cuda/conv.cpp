#include "ops/cuda/conv.hpp"

#include <algorithm>
#include <array>

#include "ops/cuda/device_kernel.hpp"
#include "ops/cuda/element_types.hpp"
#include "ops/cuda/launch.hpp"
#include "ops/device/arguments.hpp"
#include "ops/kernels/nn/conv.hpp"

namespace troupe::cuda {
namespace {

class Conv final : public DeviceKernel {
 public:
  Conv(const KernelSpec& spec, const WindowAttrs& window)
      : op_(spec.node.op),
        dtype_(spec.type()),
        window_(window),
        functions_{GpuFunction{device_type(op_.c_str(), {element_type(dtype_)}), kRegistersOfTiles},
                   GpuFunction{device_type("ReduceColumns",
                                           {"troupe::formula::SumOf", element_type(dtype_)})}} {}

  std::span<GpuFunction> functions() override { return functions_; }

  Status compute(KernelContext& ctx) override {
    const bool of_input = op_ == "Conv2DBackpropInput", of_filter = op_ == "Conv2DBackpropFilter";
    Shape x = ctx.input(0).shape(), filter = ctx.input(1).shape();
    if (of_input) {
      TROUPE_TRY(x, shape_operand(ctx.input(0)));
    }
    if (of_filter) {
      TROUPE_TRY(filter, shape_operand(ctx.input(1)));
    }
    TROUPE_TRY(const ConvShape s, conv_shape(window_, x, filter));
    const Shape y = y_shape(s);
    if (ctx.inputs() == 3 && ctx.input(2).shape() != y)
      return invalid_argument("dy is " + ctx.input(2).shape().text() +
                              ", but the convolution gives " + y.text());
    TROUPE_TRY(Tensor to, ctx.allocate(dtype_, of_input ? x : of_filter ? filter : y));
    device::ConvArgs args{};
    if (!of_input) args.x = ctx.input(0).raw();
    if (!of_filter) args.filter = ctx.input(1).raw();
    if (ctx.inputs() == 3) args.dy = ctx.input(2).raw();
    args.to = to.mutable_raw();
    args.images = s.batch, args.in = s.in_c, args.out = s.out_c, args.groups = s.groups;
    args.h = {s.in_h, s.out_h, s.filter_h, s.stride_h, s.dilation_h, s.pad_top};
    args.w = {s.in_w, s.out_w, s.filter_w, s.stride_w, s.dilation_w, s.pad_left};
    if (to.elements() != 0) {
      const std::int64_t columns = (of_input ? s.in_c : s.out_c) / s.groups;
      const std::int64_t rows = to.elements() / s.groups / columns;
      if (of_filter)
        TROUPE_TRY(sum_of_parts(ctx, args, rows, columns, to.elements()));
      else
        TROUPE_TRY(launch(ctx, functions_[0], block_for_each_tile(s.groups, rows, columns), &args));
    }
    ctx.set_output(0, std::move(to));
    return ok_status();
  }

 private:
  // A filter has few tiles, and each of its elements a long sum over pixels. It is cut into parts,
  // so that a GPU has enough blocks; how many depends on shapes alone.
  Status sum_of_parts(const KernelContext& ctx, device::ConvArgs& args, std::int64_t rows,
                      std::int64_t columns, std::int64_t elements) const {
    constexpr std::int64_t kBlocks = 256, kLeast = 512;
    const std::int64_t pixels = args.images * args.h.out * args.w.out;
    const std::int64_t tiles = tiles_of(args.groups, rows, columns);
    args.parts = std::clamp<std::int64_t>(kBlocks / tiles, 1, pixels / kLeast + 1);
    args.part = (pixels + args.parts - 1) / args.parts;
    const Grid grid = block_for_each(args.parts * tiles);
    if (args.parts == 1) return launch(ctx, functions_[0], grid, &args);
    TROUPE_TRY(Tensor sums, ctx.allocate(dtype_, Shape{args.parts, elements}));
    device::ReduceArgs all{sums.raw(), args.to, 1, args.parts, elements};
    args.to = sums.mutable_raw();
    TROUPE_TRY(launch(ctx, functions_[0], grid, &args));
    return launch(ctx, functions_[1], block_for_each(strips_of(elements)), &all);
  }

  const std::string op_;
  const DType dtype_;
  const WindowAttrs window_;
  std::array<GpuFunction, 2> functions_;
};

}  // namespace

Expected<std::unique_ptr<Kernel>> conv2d(const KernelSpec& spec) {
  TROUPE_TRY(const WindowAttrs window, read_window(spec, false));
  return std::unique_ptr<Kernel>(new Conv(spec, window));
}

}  // namespace troupe::cuda
