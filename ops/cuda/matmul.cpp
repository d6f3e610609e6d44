#include "ops/cuda/matmul.hpp"

#include <vector>

#include "ops/cuda/device_kernel.hpp"
#include "ops/cuda/element_types.hpp"
#include "ops/cuda/launch.hpp"
#include "ops/cuda/moves.hpp"
#include "ops/detail/matmul_sizes.hpp"

namespace troupe::cuda {

device::MatMulArgs matmul_args(std::int64_t m, std::int64_t n, std::int64_t k, bool transpose_a,
                               bool transpose_b) {
  device::MatMulArgs args{};
  args.m = m, args.n = n, args.k = k, args.count = 1;
  args.a_row = transpose_a ? 1 : k, args.a_column = transpose_a ? m : 1;
  args.b_row = transpose_b ? 1 : n, args.b_column = transpose_b ? k : 1;
  return args;
}

GpuFunction matmul_function(DType dtype) {
  return {device_type("MatMul", {element_type(without_sign(dtype))}), kRegistersOfTiles};
}

namespace {

// MatMul, or BatchMatMul, over leading dimensions that broadcast.
class MatMul final : public DeviceKernel {
 public:
  explicit MatMul(const KernelSpec& spec)
      : batched_(spec.node.op == "BatchMatMul"),
        dtype_(spec.type()),
        transpose_a_(spec.bool_attr("transpose_a")),
        transpose_b_(spec.bool_attr("transpose_b")),
        function_(matmul_function(dtype_)) {}

  std::span<GpuFunction> functions() override { return {&function_, 1}; }

  Status compute(KernelContext& ctx) override {
    const Tensor &a = ctx.input(0), &b = ctx.input(1);
    if (a.rank() < 2 || b.rank() < 2 || (!batched_ && (a.rank() > 2 || b.rank() > 2)))
      return invalid_argument("a product wants matrices, not " + a.shape().text() + " and " +
                              b.shape().text());
    const Shape of_a = leading(a.shape()), of_b = leading(b.shape());
    TROUPE_TRY(const auto sizes,
               detail::matmul_sizes(last_two(a), transpose_a_, last_two(b), transpose_b_));
    TROUPE_TRY(const auto meet, Broadcast<2>::of({&of_a, &of_b}));
    device::MatMulArgs args = matmul_args(sizes.m, sizes.n, sizes.k, transpose_a_, transpose_b_);
    args.count = meet.elements();
    args.walk = walk_of<2>(meet);
    std::vector<std::int64_t> dims(meet.out().dims().begin(), meet.out().dims().end());
    dims.insert(dims.end(), {args.m, args.n});
    TROUPE_TRY(Shape shape, Shape::make(dims));
    TROUPE_TRY(Tensor y, ctx.allocate(dtype_, shape));
    args.a = a.raw();
    args.b = b.raw();
    args.y = y.mutable_raw();
    if (y.elements() != 0)
      TROUPE_TRY(launch(ctx, function_, block_for_each_tile(args.count, args.m, args.n), &args));
    ctx.set_output(0, std::move(y));
    return ok_status();
  }

 private:
  static Shape leading(const Shape& shape) {
    return Shape(shape.dims().first(std::size_t(shape.rank() - 2)));
  }
  static Shape last_two(const Tensor& x) { return Shape(x.shape().dims().last(2)); }

  bool batched_;
  DType dtype_;
  bool transpose_a_, transpose_b_;
  GpuFunction function_;
};

}  // namespace

Expected<std::unique_ptr<Kernel>> matmul(const KernelSpec& spec) {
  return std::unique_ptr<Kernel>(new MatMul(spec));
}

}  // namespace troupe::cuda
