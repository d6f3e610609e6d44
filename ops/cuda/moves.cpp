#include "ops/cuda/moves.hpp"

#include <mutex>

#include "ops/cuda/element_types.hpp"
#include "ops/cuda/launch.hpp"

namespace troupe::cuda {
namespace {

// Kept on the device from the first call on, by all steps of the plan.
class Const final : public Kernel {
 public:
  explicit Const(Tensor value) : value_(std::move(value)) {}

  Status compute(KernelContext& ctx) override {
    std::lock_guard lock(mutex_);
    if (!there_.defined()) {
      // Of the device's own memory: it is no step's.
      TROUPE_TRY(Tensor there,
                 Tensor::make(value_.dtype(), value_.shape(), ctx.device().allocator()));
      ctx.stream().wait(ctx.device().copy(value_, there));
      ctx.stream().mark();
      there_ = std::move(there);
    }
    ctx.set_output(0, there_);
    return ok_status();
  }

 private:
  const Tensor value_;
  std::mutex mutex_;
  Tensor there_;
};

class Pass final : public Kernel {
  Status compute(KernelContext& ctx) override {
    ctx.set_output(0, ctx.input(0));
    return ok_status();
  }
};

}  // namespace

std::string copy_type(DType dtype) {
  const std::string moved = moved_type(dtype);
  return device_type("Elementwise", {"troupe::formula::Same", moved, moved});
}

Status copy_elements(const KernelContext& ctx, const GpuFunction& copy, const void* from, void* to,
                     std::int64_t n) {
  device::ElementwiseArgs<1> args{};
  args.in[0] = from, args.out = to, args.n = n;
  args.walk.rank = 1, args.walk.dims[0] = n, args.walk.strides[0][0] = 1;
  return n == 0 ? ok_status() : launch(ctx, copy, grid_for(n), &args);
}

Repeater::Repeater(DType dtype) : dtype_(dtype) {
  functions_[0].type = copy_type(dtype);
  functions_[1].type =
      is_float(dtype) ? device_type("RepeatScaled", {element_type(dtype)}) : functions_[0].type;
}

Expected<Tensor> Repeater::operator()(const KernelContext& ctx, const Tensor& x, const Shape& like,
                                      const Shape& out, std::optional<double> scale) const {
  TROUPE_TRY(auto meet, Broadcast<2>::of({&like, &out}));
  if (meet.out() != out || like.elements() != x.elements())
    return invalid_argument(x.shape().text() + " does not broadcast to " + out.text());
  TROUPE_TRY(Tensor y, ctx.allocate(dtype_, out));
  if (y.elements() == 0) return y;
  device::RepeatScaledArgs args{};
  args.moved.in[0] = x.raw();
  args.moved.out = y.mutable_raw();
  args.moved.n = y.elements();
  args.moved.walk = walk_of<1>(meet);
  args.scale = scale.value_or(1);
  const Grid grid = grid_for(args.moved.n);
  if (scale)
    TROUPE_TRY(launch(ctx, functions_[1], grid, &args));
  else
    TROUPE_TRY(launch(ctx, functions_[0], grid, &args.moved));
  return y;
}

Expected<Tensor> uploaded(const KernelContext& ctx, const Tensor& here) {
  TROUPE_TRY(Tensor there, ctx.allocate(here.dtype(), here.shape()));
  ctx.stream().wait(ctx.device().copy(here, there));
  return there;
}

Expected<std::unique_ptr<Kernel>> constant(const KernelSpec& spec) {
  return std::unique_ptr<Kernel>(new Const(spec.tensor_attr("value")));
}

Expected<std::unique_ptr<Kernel>> pass(const KernelSpec&) {
  return std::unique_ptr<Kernel>(new Pass);
}

}  // namespace troupe::cuda
