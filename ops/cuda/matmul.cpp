#include "ops/cuda/matmul.hpp"

#include <array>

#include "ops/cuda/device_kernel.hpp"
#include "ops/cuda/element_types.hpp"
#include "ops/cuda/launch.hpp"
#include "ops/device/arguments.hpp"

namespace troupe::cuda {
namespace {

class MatMul final : public DeviceKernel {
 public:
  explicit MatMul(const KernelSpec& spec)
      : dtype_(spec.type()),
        transpose_a_(spec.bool_attr("transpose_a")),
        transpose_b_(spec.bool_attr("transpose_b")),
        function_{device_type("MatMul", {element_type(without_sign(dtype_))})} {}

  std::span<GpuFunction> functions() override { return {&function_, 1}; }

  Status compute(KernelContext& ctx) override {
    const Tensor &a = ctx.input(0), &b = ctx.input(1);
    if (a.rank() != 2 || b.rank() != 2)
      return invalid_argument("MatMul wants matrices, not " + a.shape().text() + " and " +
                              b.shape().text());
    device::MatMulArgs args{};
    args.m = a.dim(transpose_a_ ? 1 : 0);
    args.k = a.dim(transpose_a_ ? 0 : 1);
    args.n = b.dim(transpose_b_ ? 0 : 1);
    if (b.dim(transpose_b_ ? 1 : 0) != args.k)
      return invalid_argument("inner dimensions differ: a is " + a.shape().text() +
                              (transpose_a_ ? " transposed" : "") + ", b is " + b.shape().text() +
                              (transpose_b_ ? " transposed" : ""));
    args.a_row = transpose_a_ ? 1 : args.k;
    args.a_column = transpose_a_ ? args.m : 1;
    args.b_row = transpose_b_ ? 1 : args.n;
    args.b_column = transpose_b_ ? args.k : 1;
    TROUPE_TRY(Shape shape, Shape::make(std::array{args.m, args.n}));
    TROUPE_TRY(Tensor y, ctx.allocate(dtype_, shape));
    args.a = a.raw();
    args.b = b.raw();
    args.y = y.mutable_raw();
    if (y.elements() != 0) {
      constexpr std::int64_t kTile = 16;
      const std::int64_t tiles = ((args.m + kTile - 1) / kTile) * ((args.n + kTile - 1) / kTile);
      TROUPE_TRY(launch(ctx, function_, {unsigned(std::min(tiles, kMostBlocks)), kThreads}, &args));
    }
    ctx.set_output(0, std::move(y));
    return ok_status();
  }

 private:
  DType dtype_;
  bool transpose_a_, transpose_b_;
  GpuFunction function_;
};

}  // namespace

Expected<std::unique_ptr<Kernel>> matmul(const KernelSpec& spec) {
  return std::unique_ptr<Kernel>(new MatMul(spec));
}

}  // namespace troupe::cuda
