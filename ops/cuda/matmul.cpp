#include "ops/cuda/matmul.hpp"

#include <cstddef>
#include <limits>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

#include "devices/cuda/cuda_device.hpp"
#include "ops/cuda/device_kernel.hpp"
#include "ops/cuda/element_types.hpp"
#include "ops/cuda/follow.hpp"
#include "ops/cuda/launch.hpp"
#include "ops/cuda/moves.hpp"
#include "ops/cuda/workspace.hpp"
#include "ops/detail/bias.hpp"
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

// How products of one kind are computed: by the library if there is one, else by a function.
struct Multiplier {
  DType dtype;
  bool transpose_a, transpose_b;

  // What has no terms is filled with zeros by kernels.
  Products* library_for(const KernelContext& ctx, const device::MatMulArgs& args) const {
    const bool takes =
        is_float(dtype) && args.k != 0 && innermost(args.walk) <= std::numeric_limits<int>::max();
    return takes ? static_cast<CudaDevice&>(ctx.device()).products() : nullptr;
  }

  Status operator()(const KernelContext& ctx, const GpuFunction& function,
                    device::MatMulArgs& args) const {
    if (Products* library = library_for(ctx, args)) {
      Status done = by_library(ctx, *library, args, nullptr);
      // What it has computed of several products is computed again, later in the stream.
      if (!library->leaves(done)) return done;
    }
    return launch(ctx, function, block_for_each_tile(args.count, args.m, args.n), &args);
  }

  // How many products follow each other at fixed distances.
  static std::int64_t innermost(const device::Walk<2>& walk) {
    return walk.rank == 0 ? 1 : walk.dims[walk.rank - 1];
  }

  // A call of the library for each innermost row of products.
  Status by_library(const KernelContext& ctx, Products& products, const device::MatMulArgs& args,
                    const void* bias) const {
    auto& device = static_cast<CudaDevice&>(ctx.device());
    const device::Walk<2>& walk = args.walk;
    const std::int64_t row = innermost(walk), of_a = args.m * args.k, of_b = args.k * args.n;
    LtProduct product{dtype, args.m, args.n, args.k, transpose_a, transpose_b, row};
    if (row > 1) {
      product.next_a = walk.strides[0][walk.rank - 1] * of_a;
      product.next_b = walk.strides[1][walk.rank - 1] * of_b;
    }
    product.bias = bias != nullptr;
    Tensor workspace;
    for (std::int64_t first = 0; first < args.count; first += row) {
      std::int64_t a = 0, b = 0, rest = first / row;
      for (int d = walk.rank - 2; d >= 0; --d) {
        a += rest % walk.dims[d] * walk.strides[0][d] * of_a;
        b += rest % walk.dims[d] * walk.strides[1][d] * of_b;
        rest /= walk.dims[d];
      }
      const Operands operands{at(args.a, a), at(args.b, b), at(args.y, first * args.m * args.n),
                              bias};
      TROUPE_TRY(const Products::PlanPtr plan, products.plan(product, operands));
      TROUPE_TRY(void* space, workspace_of(ctx, Products::workspace(*plan), workspace));
      TROUPE_TRY(device.issue(
          [&](StreamHandle stream) { return products.run(*plan, operands, space, stream); }));
    }
    return ok_status();
  }

  template <class P>
  P* at(P* data, std::int64_t element) const {
    using Byte = std::conditional_t<std::is_const_v<P>, const std::byte, std::byte>;
    return static_cast<Byte*>(data) + element * std::int64_t(dtype_size(dtype));
  }
};

// MatMul, alone or with what follows on it, or BatchMatMul, over leading dimensions that broadcast.
class MatMul final : public DeviceKernel {
 public:
  explicit MatMul(const KernelSpec& spec)
      : batched_(spec.node.op == "BatchMatMul"),
        dtype_(spec.type()),
        multiply_{dtype_, spec.bool_attr("transpose_a"), spec.bool_attr("transpose_b")},
        has_bias_(spec.node.op == "_MatMulBias"),
        functions_{matmul_function(dtype_)} {
    if (!has_bias_) return;
    for (GpuFunction& one : functions_that_follow(dtype_, spec.bool_attr("relu")))
      functions_.push_back(std::move(one));
  }

  // The first one multiplies, the others follow.
  std::span<GpuFunction> functions() override { return functions_; }
  bool multiplies() const override { return is_float(dtype_); }

  Status compute(KernelContext& ctx) override {
    const Tensor &a = ctx.input(0), &b = ctx.input(1);
    if (a.rank() < 2 || b.rank() < 2 || (!batched_ && (a.rank() > 2 || b.rank() > 2)))
      return invalid_argument("a product wants matrices, not " + a.shape().text() + " and " +
                              b.shape().text());
    const Shape of_a = leading(a.shape()), of_b = leading(b.shape());
    TROUPE_TRY(const auto sizes, detail::matmul_sizes(last_two(a), multiply_.transpose_a,
                                                      last_two(b), multiply_.transpose_b));
    TROUPE_TRY(const auto meet, Broadcast<2>::of({&of_a, &of_b}));
    device::MatMulArgs args =
        matmul_args(sizes.m, sizes.n, sizes.k, multiply_.transpose_a, multiply_.transpose_b);
    args.count = meet.elements();
    args.walk = walk_of<2>(meet);
    std::vector<std::int64_t> dims(meet.out().dims().begin(), meet.out().dims().end());
    dims.insert(dims.end(), {args.m, args.n});
    TROUPE_TRY(Shape shape, Shape::make(dims));
    if (has_bias_) TROUPE_TRY(detail::check_bias(ctx.input(2).shape(), shape));
    TROUPE_TRY(Tensor y, ctx.allocate(dtype_, shape));
    args.a = a.raw();
    args.b = b.raw();
    args.y = y.mutable_raw();
    if (y.elements() != 0) TROUPE_TRY(finish(ctx, args, y));
    ctx.set_output(0, std::move(y));
    return ok_status();
  }

 private:
  static Shape leading(const Shape& shape) {
    return Shape(shape.dims().first(std::size_t(shape.rank() - 2)));
  }
  static Shape last_two(const Tensor& x) { return Shape(x.shape().dims().last(2)); }

  Status finish(const KernelContext& ctx, device::MatMulArgs& args, Tensor& y) const {
    if (!has_bias_) return multiply_(ctx, functions_[0], args);
    const Tensor& bias = ctx.input(2);
    const auto others = std::span(functions_).subspan(1);
    if (Products* library = multiply_.library_for(ctx, args)) {
      Status done = multiply_.by_library(ctx, *library, args, bias.raw());
      // cuBLASLt's own Relu would make 0 of NaN.
      if (done.ok()) return follow(ctx, others, nullptr, y);
      if (done.code() != Code::unimplemented) return done;  // else its parts
    }
    TROUPE_TRY(multiply_(ctx, functions_[0], args));
    return follow(ctx, others, &bias, y);
  }

  bool batched_;
  DType dtype_;
  Multiplier multiply_;
  bool has_bias_;
  std::vector<GpuFunction> functions_;
};

}  // namespace

Status multiply(const KernelContext& ctx, const GpuFunction& function, DType dtype,
                const MatrixFactor& a, const MatrixFactor& b, void* y, std::int64_t count,
                std::int64_t m, std::int64_t n, std::int64_t k) {
  if (count == 0 || m == 0 || n == 0) return ok_status();
  device::MatMulArgs args = matmul_args(m, n, k, a.transpose, b.transpose);
  args.a = a.data, args.b = b.data, args.y = y, args.count = count;
  args.walk.rank = 1, args.walk.dims[0] = count;
  args.walk.strides[0][0] = args.walk.strides[1][0] = 1;
  return Multiplier{dtype, a.transpose, b.transpose}(ctx, function, args);
}

Expected<std::unique_ptr<Kernel>> matmul(const KernelSpec& spec) {
  return std::unique_ptr<Kernel>(new MatMul(spec));
}

}  // namespace troupe::cuda
