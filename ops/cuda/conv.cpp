#include "ops/cuda/conv.hpp"

#include <algorithm>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "devices/cuda/alignment.hpp"
#include "devices/cuda/cuda_device.hpp"
#include "ops/cuda/device_kernel.hpp"
#include "ops/cuda/element_types.hpp"
#include "ops/cuda/follow.hpp"
#include "ops/cuda/launch.hpp"
#include "ops/cuda/reduce.hpp"
#include "ops/cuda/strided.hpp"
#include "ops/cuda/workspace.hpp"
#include "ops/detail/bias.hpp"
#include "ops/device/arguments.hpp"
#include "ops/kernels/nn/conv.hpp"

namespace troupe::cuda {
namespace {

// Memory of a device is aligned to more: only a part of a tensor may lie elsewhere.
constexpr std::uint32_t kMostAlignment = 16;

ConvolutionOf result_of(std::string_view op) {
  if (op == "Conv2DBackpropInput") return ConvolutionOf::dx;
  return op == "Conv2DBackpropFilter" ? ConvolutionOf::dfilter : ConvolutionOf::y;
}

ConvolutionThen what_follows(const KernelSpec& spec) {
  if (spec.node.op != "_Conv2DBias") return ConvolutionThen::nothing;
  return spec.bool_attr("relu") ? ConvolutionThen::bias_relu : ConvolutionThen::bias;
}

const char* function_of(ConvolutionOf of) {
  constexpr const char* kNames[] = {"Conv2D", "Conv2DBackpropInput", "Conv2DBackpropFilter"};
  return kNames[std::size_t(of)];
}

class Conv final : public DeviceKernel {
 public:
  Conv(const KernelSpec& spec, const WindowAttrs& window)
      : of_(result_of(spec.node.op)),
        then_(what_follows(spec)),
        dtype_(spec.type()),
        window_(window),
        functions_{
            GpuFunction{device_type(function_of(of_), {element_type(dtype_)}), kRegistersOfTiles}} {
    if (of_ == ConvolutionOf::dfilter) functions_.push_back(sum_of_columns(dtype_));
    if (then_ != ConvolutionThen::nothing)
      for (GpuFunction& one : functions_that_follow(dtype_, then_ == ConvolutionThen::bias_relu))
        functions_.push_back(std::move(one));
    functions_.push_back(copy_strided_function(dtype_));
  }

  // The first one convolves, the last one moves filters for the library. Between them are those
  // that finish the result.
  std::span<GpuFunction> functions() override {
    return std::span(functions_).first(functions_.size() - (has_library_ ? 0 : 1));
  }
  bool convolves() const override { return true; }
  void convolve_by_library(bool library) override { has_library_ = library; }

  Status compute(KernelContext& ctx) override {
    const bool of_input = of_ == ConvolutionOf::dx, of_filter = of_ == ConvolutionOf::dfilter;
    Shape x = ctx.input(0).shape(), filter = ctx.input(1).shape();
    if (of_input) {
      TROUPE_TRY(x, shape_operand(ctx.input(0)));
    }
    if (of_filter) {
      TROUPE_TRY(filter, shape_operand(ctx.input(1)));
    }
    TROUPE_TRY(const ConvShape s, conv_shape(window_, x, filter));
    const Shape y = y_shape(s);
    const bool of_gradient = of_ != ConvolutionOf::y, has_bias = then_ != ConvolutionThen::nothing;
    if (of_gradient && ctx.input(2).shape() != y)
      return invalid_argument("dy is " + ctx.input(2).shape().text() +
                              ", but the convolution gives " + y.text());
    if (has_bias) TROUPE_TRY(detail::check_bias(ctx.input(2).shape(), y));
    TROUPE_TRY(Tensor to, ctx.allocate(dtype_, of_input ? x : of_filter ? filter : y));
    device::ConvArgs args{};
    if (!of_input) args.x = ctx.input(0).raw();
    if (!of_filter) args.filter = ctx.input(1).raw();
    if (of_gradient) args.dy = ctx.input(2).raw();
    args.to = to.mutable_raw();
    args.images = s.batch, args.in = s.in_c, args.out = s.out_c, args.groups = s.groups;
    args.h = {s.in_h, s.out_h, s.filter_h, s.stride_h, s.dilation_h, s.pad_top};
    args.w = {s.in_w, s.out_w, s.filter_w, s.stride_w, s.dilation_w, s.pad_left};
    if (to.elements() != 0) TROUPE_TRY(convolve(ctx, s, args, to));
    ctx.set_output(0, std::move(to));
    return ok_status();
  }

 private:
  Status convolve(const KernelContext& ctx, const ConvShape& s, device::ConvArgs& args,
                  Tensor& to) const {
    if (then_ == ConvolutionThen::nothing) return convolve_alone(ctx, s, args, to.elements());
    if (Convolutions* library = library_for(ctx, s)) {
      Status done = by_library(ctx, *library, s, args, then_);
      if (done.code() != Code::unimplemented) return done;  // else its parts
    }
    TROUPE_TRY(convolve_alone(ctx, s, args, to.elements()));
    // Between the function that convolves and the one that moves filters.
    return follow(ctx, std::span(functions_).subspan(1, functions_.size() - 2), &ctx.input(2), to);
  }

  // What has no terms is filled with zeros by kernels.
  static Convolutions* library_for(const KernelContext& ctx, const ConvShape& s) {
    const bool empty =
        x_shape(s).elements() == 0 || y_shape(s).elements() == 0 || filter_shape(s).elements() == 0;
    return empty ? nullptr : static_cast<CudaDevice&>(ctx.device()).convolutions();
  }

  Status convolve_alone(const KernelContext& ctx, const ConvShape& s, device::ConvArgs& args,
                        std::int64_t elements) const {
    if (Convolutions* library = library_for(ctx, s)) {
      Status done = by_library(ctx, *library, s, args, ConvolutionThen::nothing);
      if (!library->leaves(done)) return done;
    }
    const std::int64_t columns = (of_ == ConvolutionOf::dx ? s.in_c : s.out_c) / s.groups;
    const std::int64_t rows = elements / s.groups / columns;
    if (of_ == ConvolutionOf::dfilter) return sum_of_parts(ctx, args, rows, columns, elements);
    return launch(ctx, functions_[0], block_for_each_tile(s.groups, rows, columns), &args);
  }

  // cuDNN's filters lie as [k,h,w,c], Troupe's as [h,w,c,k]: they are moved.
  Status by_library(const KernelContext& ctx, Convolutions& convolutions, const ConvShape& s,
                    const device::ConvArgs& args, ConvolutionThen then) const {
    auto& device = static_cast<CudaDevice&>(ctx.device());
    const std::int64_t taps = filter_shape(s).elements() / s.out_c;
    const bool moves = taps != 1 && s.out_c != 1;
    DnnOperands operands{args.x, args.filter, args.dy};
    (of_ == ConvolutionOf::y    ? operands.y
     : of_ == ConvolutionOf::dx ? operands.x
                                : operands.filter) = args.to;
    DnnConvolution wanted = description(s);
    wanted.then = then;
    if (then != ConvolutionThen::nothing) {
      operands.bias = ctx.input(2).raw();
      wanted.align_bias = alignment_of(operands.bias, kMostAlignment);
    }
    wanted.align_x = alignment_of(operands.x, kMostAlignment),
    wanted.align_y = alignment_of(operands.y, kMostAlignment);
    if (!moves) wanted.align_filter = alignment_of(operands.filter, kMostAlignment);
    const Shape across{taps, s.out_c};
    const std::int64_t here[] = {s.out_c, 1}, there[] = {1, taps};
    Tensor moved, workspace;
    const auto move = [&]() -> Status {
      if (!moves || moved.defined()) return ok_status();
      TROUPE_TRY(moved, ctx.allocate(dtype_, across));
      const void* filter = std::exchange(operands.filter, moved.raw());
      if (of_ == ConvolutionOf::dfilter) return ok_status();
      return copy_strided(ctx, dtype_, across, filter, here, moved.mutable_raw(), there);
    };
    const auto trial = [&](const ConvolutionPlan& candidate) -> Expected<double> {
      TROUPE_TRY(move());
      TROUPE_TRY(void* space, workspace_of(ctx, candidate.workspace(), workspace));
      Expected<double> took = unavailable("the stream has failed: nothing is measured");
      const Convolutions::Turn turn(convolutions);
      TROUPE_TRY(device.issue([&](StreamHandle stream) {
        took = convolutions.time(turn, candidate, operands, space, stream);
        return took.status();
      }));
      return took;
    };
    TROUPE_TRY(const Convolutions::PlanPtr plan, convolutions.plan(wanted, trial));
    TROUPE_TRY(move());
    TROUPE_TRY(void* space, workspace_of(ctx, plan->workspace(), workspace));
    {
      const Convolutions::Turn turn(convolutions);
      TROUPE_TRY(device.issue([&](StreamHandle stream) {
        return convolutions.run(turn, *plan, operands, space, stream);
      }));
    }
    if (!moves || of_ != ConvolutionOf::dfilter) return ok_status();
    return copy_strided(ctx, dtype_, across, moved.raw(), there, args.to, here);
  }

  DnnConvolution description(const ConvShape& s) const {
    DnnConvolution c;
    c.of = of_, c.dtype = dtype_;
    c.images = s.batch, c.in_channels = s.in_c, c.out_channels = s.out_c, c.groups = s.groups;
    c.in = {s.in_h, s.in_w}, c.out = {s.out_h, s.out_w}, c.filter = {s.filter_h, s.filter_w};
    c.stride = {s.stride_h, s.stride_w}, c.dilation = {s.dilation_h, s.dilation_w};
    c.pad_before = {s.pad_top, s.pad_left}, c.pad_after = {s.pad_bottom, s.pad_right};
    return c;
  }

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
    TROUPE_TRY(Tensor sums, ctx.allocate(sum_type(dtype_), Shape{args.parts, elements}));
    void* const to = std::exchange(args.to, sums.mutable_raw());
    TROUPE_TRY(launch(ctx, functions_[0], grid, &args));
    return sum_columns(ctx, functions_[1], sums.raw(), to, args.parts, elements);
  }

  const ConvolutionOf of_;
  const ConvolutionThen then_;
  const DType dtype_;
  const WindowAttrs window_;
  std::vector<GpuFunction> functions_;
  bool has_library_ = false;
};

}  // namespace

Expected<std::unique_ptr<Kernel>> conv2d(const KernelSpec& spec) {
  TROUPE_TRY(const WindowAttrs window, read_window(spec, false));
  return std::unique_ptr<Kernel>(new Conv(spec, window));
}

}  // namespace troupe::cuda
