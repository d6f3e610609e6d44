#include "ops/cuda/add_n.hpp"

#include "ops/cuda/device_kernel.hpp"
#include "ops/cuda/element_types.hpp"
#include "ops/cuda/launch.hpp"
#include "ops/device/arguments.hpp"

namespace troupe::cuda {
namespace {

class AddN final : public DeviceKernel {
 public:
  explicit AddN(DType dtype)
      : dtype_(dtype), function_{device_type("AddN", {element_type(without_sign(dtype))})} {}

  std::span<GpuFunction> functions() override { return {&function_, 1}; }

  Status compute(KernelContext& ctx) override {
    const Shape shape = ctx.input(0).shape();
    for (int k = 1; k < ctx.inputs(); ++k)
      if (ctx.input(k).shape() != shape)
        return invalid_argument("AddN: values[0] is " + shape.text() + " and values[" +
                                std::to_string(k) + "] " + ctx.input(k).shape().text());
    TROUPE_TRY(Tensor y, ctx.reuse_or_allocate(0, dtype_, shape));
    device::AddNArgs args{};
    args.y = y.mutable_raw();
    args.n = y.elements();
    Tensor unfinished;  // in which a sum of many goes on
    for (int k = 0; k < ctx.inputs() && args.n != 0; k += args.count) {
      args.count = std::min(ctx.inputs() - k, device::kMostAdded);
      for (int i = 0; i < args.count; ++i) args.in[i] = ctx.input(k + i).raw();
      args.begun = args.unfinished;
      args.unfinished = nullptr;
      if (k + args.count < ctx.inputs()) {
        if (!unfinished.defined()) {
          TROUPE_TRY(unfinished,
                     ctx.allocate(dtype_size(dtype_) < 4 && is_float(dtype_) ? DType::f32 : dtype_,
                                  shape));
        }
        args.unfinished = unfinished.mutable_raw();
      }
      TROUPE_TRY(launch(ctx, function_, grid_for(args.n), &args));
    }
    ctx.set_output(0, std::move(y));
    return ok_status();
  }

 private:
  const DType dtype_;
  GpuFunction function_;
};

}  // namespace

Expected<std::unique_ptr<Kernel>> add_n(const KernelSpec& spec) {
  return std::unique_ptr<Kernel>(new AddN(spec.type()));
}

}  // namespace troupe::cuda
