#include "ops/cuda/norm.hpp"

#include <algorithm>
#include <cstddef>
#include <vector>

#include "ops/cuda/device_kernel.hpp"
#include "ops/cuda/element_types.hpp"
#include "ops/cuda/launch.hpp"
#include "ops/cuda/reduce.hpp"
#include "ops/device/arguments.hpp"

namespace troupe::cuda {
namespace {

// Those of columns of n, of so many rows.
device::Parts parts_of_columns(std::int64_t rows, std::int64_t n) {
  return parts_of(rows, strips_of(n), kLeastOfColumns);
}
Grid grid_of(const device::Parts& parts, std::int64_t n) {
  return block_for_each(parts.count * strips_of(n));
}

class Norm : public DeviceKernel {
 public:
  Norm(const KernelSpec& spec, std::initializer_list<const char*> functions) : dtype_(spec.type()) {
    for (const char* name : functions)
      functions_.push_back({device_type(name, {element_type(dtype_)})});
  }
  std::span<GpuFunction> functions() override { return functions_; }

 protected:
  struct Rows {
    std::int64_t rows, n;
  };
  // What input `x` consists of; inputs [first, last] are as long as a row.
  Expected<Rows> rows_of(const KernelContext& ctx, int x, int first, int last) const {
    const Shape& shape = ctx.input(x).shape();
    if (shape.rank() < 1) return invalid_argument("a norm wants at least one dimension");
    const std::int64_t n = shape.dim(shape.rank() - 1);
    for (int i = first; i <= last; ++i)
      if (ctx.input(i).shape() != Shape{n})
        return invalid_argument("input " + std::to_string(i) + " of a norm over " +
                                std::to_string(n) + " elements is " + ctx.input(i).shape().text());
    return Rows{n == 0 ? 0 : shape.elements() / n, n};
  }
  static Status want_like(const KernelContext& ctx, int a, int b) {
    if (ctx.input(a).shape() == ctx.input(b).shape()) return ok_status();
    return invalid_argument("dy is " + ctx.input(a).shape().text() + ", x is " +
                            ctx.input(b).shape().text());
  }
  Expected<Tensor> row(const KernelContext& ctx, std::int64_t n) const {
    return ctx.allocate(dtype_, Shape{n});
  }
  // Function `of`, which adds up two numbers of each column: to dscale and doffset. Where it is cut
  // into parts, function `join` adds up those.
  template <class Args>
  Status add_columns(const KernelContext& ctx, std::size_t of, std::size_t join, Args& args) const {
    if (args.n == 0) return ok_status();
    args.parts = parts_of_columns(args.rows, args.n);
    const std::int64_t count = args.parts.count;
    const Grid grid = grid_of(args.parts, args.n);
    if (count == 1) return launch(ctx, functions_[of], grid, &args);
    TROUPE_TRY(Tensor scales, ctx.allocate(sum_type(dtype_), Shape{2, count, args.n}));
    args.sums = scales.mutable_raw();
    TROUPE_TRY(launch(ctx, functions_[of], grid, &args));
    const auto* offsets = static_cast<const std::byte*>(scales.raw()) + scales.bytes() / 2;
    TROUPE_TRY(sum_columns(ctx, functions_[join], scales.raw(), args.dscale, count, args.n));
    return sum_columns(ctx, functions_[join], offsets, args.doffset, count, args.n);
  }

  // The gradient by functions 0 to 3: moments of so many groups of elements, sums of columns, dx,
  // and what joins sums. Input 0 is dy.
  template <class Args>
  Status gradient(KernelContext& ctx, std::int64_t groups, Args args) const {
    TROUPE_TRY(want_like(ctx, 0, 1));
    TROUPE_TRY(Tensor dscale, row(ctx, args.n));
    TROUPE_TRY(Tensor doffset, row(ctx, args.n));
    TROUPE_TRY(Tensor moments, ctx.allocate(sum_type(dtype_), Shape{groups, device::kMoments}));
    TROUPE_TRY(Tensor dx, ctx.reuse_or_allocate(0, dtype_, ctx.input(1).shape()));
    args.dy = ctx.input(0).raw(), args.moments = moments.mutable_raw(), args.y = dx.mutable_raw();
    args.dscale = dscale.mutable_raw(), args.doffset = doffset.mutable_raw();
    const bool empty = dx.elements() == 0;
    if (!empty) TROUPE_TRY(launch(ctx, functions_[0], block_for_each(groups), &args));
    // Before dx is written, which may be dy.
    TROUPE_TRY(add_columns(ctx, 1, 3, args));
    if (!empty) TROUPE_TRY(launch(ctx, functions_[2], block_for_each(groups), &args));
    ctx.set_output(0, std::move(dx));
    ctx.set_output(1, std::move(dscale));
    ctx.set_output(2, std::move(doffset));
    return ok_status();
  }

  const DType dtype_;
  std::vector<GpuFunction> functions_;
};

class LayerNorm final : public Norm {
 public:
  explicit LayerNorm(const KernelSpec& spec)
      : Norm(spec, {"LayerNorm"}), epsilon_(spec.float_attr("epsilon")) {
    if (dtype_ == DType::f64) functions_[0].registers = kRegistersOfLongF64;
  }
  Status compute(KernelContext& ctx) override {
    TROUPE_TRY(const Rows size, rows_of(ctx, 0, 1, 2));
    TROUPE_TRY(Tensor y, ctx.reuse_or_allocate(0, dtype_, ctx.input(0).shape()));
    device::LayerNormArgs args{};
    args.x = ctx.input(0).raw(), args.scale = ctx.input(1).raw(), args.offset = ctx.input(2).raw();
    args.y = y.mutable_raw();
    args.rows = size.rows, args.n = size.n, args.epsilon = epsilon_;
    if (size.rows != 0) TROUPE_TRY(launch(ctx, functions_[0], block_for_each(size.rows), &args));
    ctx.set_output(0, std::move(y));
    return ok_status();
  }

 private:
  const double epsilon_;
};

class LayerNormGrad final : public Norm {
 public:
  explicit LayerNormGrad(const KernelSpec& spec)
      : Norm(spec, {"LayerNormMoments", "LayerNormSums", "LayerNormGrad"}),
        epsilon_(spec.float_attr("epsilon")) {
    functions_.push_back(sum_of_columns(dtype_));
  }
  Status compute(KernelContext& ctx) override {
    TROUPE_TRY(const Rows size, rows_of(ctx, 1, 2, 2));
    device::LayerNormArgs args{};
    args.x = ctx.input(1).raw(), args.scale = ctx.input(2).raw();
    args.rows = size.rows, args.n = size.n, args.epsilon = epsilon_;
    return gradient(ctx, size.rows, args);
  }

 private:
  const double epsilon_;
};

// What group norms share: `x` and the parameters behind it, and how many groups.
class OfGroups : public Norm {
 public:
  OfGroups(const KernelSpec& spec, std::initializer_list<const char*> functions)
      : Norm(spec, functions),
        groups_(spec.int_attr("groups")),
        epsilon_(spec.float_attr("epsilon")) {}

 protected:
  Expected<device::GroupNormArgs> args_of(const KernelContext& ctx, int x, int last) const {
    TROUPE_TRY(const Rows size, rows_of(ctx, x, x + 1, last));
    const Shape& shape = ctx.input(x).shape();
    if (shape.rank() < 2)
      return invalid_argument("a group norm wants 2 dimensions or more; x has shape " +
                              shape.text());
    if (groups_ < 1 || size.n % groups_ != 0)
      return invalid_argument(std::to_string(groups_) + " groups do not divide " +
                              std::to_string(size.n) + " channels, the last dimension of x");
    device::GroupNormArgs args{};
    args.x = ctx.input(x).raw(), args.scale = ctx.input(x + 1).raw();
    args.rows = size.rows, args.n = size.n, args.epsilon = epsilon_;
    args.images = shape.dim(0),
    args.positions = size.rows / std::max<std::int64_t>(1, shape.dim(0));
    args.groups = groups_, args.in_group = size.n / groups_;
    return args;
  }

 private:
  const std::int64_t groups_;
  const double epsilon_;
};

class GroupNorm final : public OfGroups {
 public:
  explicit GroupNorm(const KernelSpec& spec) : OfGroups(spec, {"GroupNorm"}) {
    if (dtype_ == DType::f64) functions_[0].registers = kRegistersOfLongF64;
  }
  Status compute(KernelContext& ctx) override {
    TROUPE_TRY(device::GroupNormArgs args, args_of(ctx, 0, 2));
    TROUPE_TRY(Tensor y, ctx.reuse_or_allocate(0, dtype_, ctx.input(0).shape()));
    args.offset = ctx.input(2).raw(), args.y = y.mutable_raw();
    if (y.elements() != 0)
      TROUPE_TRY(launch(ctx, functions_[0], block_for_each(args.images * args.groups), &args));
    ctx.set_output(0, std::move(y));
    return ok_status();
  }
};

class GroupNormGrad final : public OfGroups {
 public:
  explicit GroupNormGrad(const KernelSpec& spec)
      : OfGroups(spec, {"GroupNormMoments", "GroupNormSums", "GroupNormGrad"}) {
    functions_.push_back(sum_of_columns(dtype_));
  }
  Status compute(KernelContext& ctx) override {
    TROUPE_TRY(const device::GroupNormArgs args, args_of(ctx, 1, 2));
    return gradient(ctx, args.images * args.groups, args);
  }
};

class BatchNorm final : public Norm {
 public:
  explicit BatchNorm(const KernelSpec& spec)
      : Norm(spec, {"BatchNormMoments", "BatchNormGiven", "BatchNorm", "BatchNormJoin"}),
        epsilon_(spec.float_attr("epsilon")),
        training_(spec.bool_attr("is_training")) {
    if (dtype_ == DType::f64) functions_[0].registers = kRegistersOfLongF64;
  }
  Status compute(KernelContext& ctx) override {
    TROUPE_TRY(const Rows size, rows_of(ctx, 0, 1, training_ ? 2 : 4));
    const bool measured = training_ && size.rows > 0;
    if (!measured) {
      TROUPE_TRY(rows_of(ctx, 0, 3, 4));
    }
    TROUPE_TRY(Tensor mean, row(ctx, size.n));
    TROUPE_TRY(Tensor variance, row(ctx, size.n));
    TROUPE_TRY(Tensor inv_std, row(ctx, size.n));
    TROUPE_TRY(Tensor by, row(ctx, size.n));
    TROUPE_TRY(Tensor y, ctx.reuse_or_allocate(0, dtype_, ctx.input(0).shape()));
    device::BatchNormArgs args{};
    args.x = ctx.input(0).raw(), args.scale = ctx.input(1).raw(), args.offset = ctx.input(2).raw();
    args.mean_in = ctx.input(3).raw(), args.variance_in = ctx.input(4).raw();
    args.mean = mean.mutable_raw(), args.variance = variance.mutable_raw();
    args.inv_std = inv_std.mutable_raw(), args.by = by.mutable_raw(), args.y = y.mutable_raw();
    args.rows = size.rows, args.n = size.n, args.epsilon = epsilon_;
    if (size.n != 0)
      TROUPE_TRY(measured ? measure(ctx, args)
                          : launch(ctx, functions_[1], grid_for(size.n), &args));
    if (y.elements() != 0) TROUPE_TRY(launch(ctx, functions_[2], grid_for(y.elements()), &args));
    ctx.set_output(0, std::move(y));
    ctx.set_output(1, std::move(mean));
    ctx.set_output(2, std::move(variance));
    ctx.set_output(3, std::move(inv_std));
    return ok_status();
  }

 private:
  Status measure(const KernelContext& ctx, device::BatchNormArgs& args) const {
    args.parts = parts_of_columns(args.rows, args.n);
    Tensor sums;
    if (args.parts.count > 1) {
      TROUPE_TRY(sums, ctx.allocate(dtype_, Shape{device::kMoments, args.parts.count, args.n}));
      args.sums = sums.mutable_raw();
    }
    TROUPE_TRY(launch(ctx, functions_[0], grid_of(args.parts, args.n), &args));
    if (args.parts.count == 1) return ok_status();
    return launch(ctx, functions_[3], block_for_each(strips_of(args.n)), &args);
  }

  const double epsilon_;
  const bool training_;
};

class BatchNormGrad final : public Norm {
 public:
  explicit BatchNormGrad(const KernelSpec& spec)
      : Norm(spec, {"BatchNormSums", "BatchNormGrad"}), training_(spec.bool_attr("is_training")) {
    functions_.push_back(sum_of_columns(dtype_));
  }
  Status compute(KernelContext& ctx) override {
    TROUPE_TRY(const Rows size, rows_of(ctx, 1, 2, 7));
    TROUPE_TRY(want_like(ctx, 0, 1));
    TROUPE_TRY(Tensor dscale, row(ctx, size.n));
    TROUPE_TRY(Tensor doffset, row(ctx, size.n));
    TROUPE_TRY(Tensor dx, ctx.reuse_or_allocate(0, dtype_, ctx.input(1).shape()));
    device::BatchNormArgs args{};
    args.dy = ctx.input(0).raw(), args.x = ctx.input(1).raw(), args.scale = ctx.input(2).raw();
    args.mean_in = ctx.input(3).raw(), args.inv_std = const_cast<void*>(ctx.input(4).raw());
    args.dmean = ctx.input(5).raw(), args.dvariance = ctx.input(6).raw();
    args.dinv_std = ctx.input(7).raw();
    args.dscale = dscale.mutable_raw(), args.doffset = doffset.mutable_raw();
    args.y = dx.mutable_raw();
    args.rows = size.rows, args.n = size.n, args.training = training_;
    TROUPE_TRY(add_columns(ctx, 0, 2, args));
    if (dx.elements() != 0) TROUPE_TRY(launch(ctx, functions_[1], grid_for(dx.elements()), &args));
    ctx.set_output(0, std::move(dx));
    ctx.set_output(1, std::move(dscale));
    ctx.set_output(2, std::move(doffset));
    return ok_status();
  }

 private:
  const bool training_;
};

template <class K>
Expected<std::unique_ptr<Kernel>> made(const KernelSpec& spec) {
  return std::unique_ptr<Kernel>(new K(spec));
}

}  // namespace

Expected<std::unique_ptr<Kernel>> layer_norm(const KernelSpec& spec) {
  return made<LayerNorm>(spec);
}
Expected<std::unique_ptr<Kernel>> layer_norm_grad(const KernelSpec& spec) {
  return made<LayerNormGrad>(spec);
}
Expected<std::unique_ptr<Kernel>> group_norm(const KernelSpec& spec) {
  return made<GroupNorm>(spec);
}
Expected<std::unique_ptr<Kernel>> group_norm_grad(const KernelSpec& spec) {
  return made<GroupNormGrad>(spec);
}
Expected<std::unique_ptr<Kernel>> batch_norm(const KernelSpec& spec) {
  return made<BatchNorm>(spec);
}
Expected<std::unique_ptr<Kernel>> batch_norm_grad(const KernelSpec& spec) {
  return made<BatchNormGrad>(spec);
}

}  // namespace troupe::cuda
