#include "ops/cuda/attention.hpp"

#include <array>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "ops/cuda/device_kernel.hpp"
#include "ops/cuda/element_types.hpp"
#include "ops/cuda/launch.hpp"
#include "ops/cuda/matmul.hpp"
#include "ops/cuda/strided.hpp"
#include "ops/device/arguments.hpp"
#include "ops/kernels/nn/attention_sizes.hpp"

namespace troupe::cuda {
namespace {

DType stats_type(DType dtype) { return dtype == DType::f64 ? DType::f64 : DType::f32; }

// The problems of attention as [outer, inner]: those of four dimensions are as they are, all others
// are in a row.
struct Problems {
  std::int64_t outer, inner;
  static Problems of(const AttentionSizes& s) {
    if (s.leading.rank() == 2) return {s.leading[0], s.leading[1]};
    return {s.count, 1};
  }
};

// A mask as device code takes it, and its memory where it was spread out.
struct MaskOnGpu {
  device::AttentionMaskArgs args{};
  Tensor spread;
};

class Attention : public DeviceKernel {
 public:
  Attention(const KernelSpec& spec, const char* rows, int mask)
      : dtype_(spec.type()),
        scale_(spec.float_attr("scale")),
        causal_(spec.bool_attr("causal")),
        mask_(spec.node.op.starts_with("Masked") ? mask : -1),
        functions_{matmul_function(dtype_),
                   GpuFunction{device_type(rows, {element_type(dtype_)})}} {
    if (mask_ >= 0) functions_.push_back(copy_strided_function(DType::bool_));
  }
  std::span<GpuFunction> functions() override { return functions_; }
  bool multiplies() const override { return true; }

 protected:
  Expected<MaskOnGpu> mask_of(const KernelContext& ctx, const AttentionSizes& s) const {
    MaskOnGpu made;
    const Problems problems = Problems::of(s);
    made.args.inner = problems.inner, made.args.queries = s.queries, made.args.keys = s.keys;
    made.args.causal = causal_;
    if (mask_ < 0) return made;
    const Tensor& mask = ctx.input(mask_);
    TROUPE_TRY(const AttentionMask strides, AttentionMask::of(mask.shape(), s));
    made.args.mask = mask.raw();
    made.args.of_query = strides.row, made.args.of_key = strides.column;
    if (s.leading.rank() == 2) {
      made.args.of_outer = strides.strides[0], made.args.of_inner = strides.strides[1];
      return made;
    }
    bool varies = false;
    for (std::int64_t stride : strides.strides) varies = varies || stride != 0;
    if (!varies) return made;
    if (s.leading.rank() == 1) {
      made.args.of_outer = strides.strides[0];
      return made;
    }
    TROUPE_TRY(const Shape all, s.matrices(s.queries, s.keys));
    TROUPE_TRY(made.spread, ctx.allocate(DType::bool_, all));
    std::vector<std::int64_t> from = strides.strides, to(std::size_t(all.rank()), 1);
    from.insert(from.end(), {strides.row, strides.column});
    for (int d = all.rank() - 1; d-- > 0;) to[std::size_t(d)] = to[std::size_t(d) + 1] * all[d + 1];
    TROUPE_TRY(copy_strided(ctx, DType::bool_, all, mask.raw(), from.data(),
                            made.spread.mutable_raw(), to.data()));
    made.args.mask = made.spread.raw();
    made.args.of_outer = s.queries * s.keys, made.args.of_query = s.keys, made.args.of_key = 1;
    return made;
  }

  Status product(const KernelContext& ctx, MatrixFactor a, MatrixFactor b, void* y,
                 std::int64_t count, std::int64_t m, std::int64_t n, std::int64_t k) const {
    return multiply(ctx, functions_[0], dtype_, a, b, y, count, m, n, k);
  }
  Status rows(const KernelContext& ctx, device::AttentionRowsArgs& args) const {
    args.scale = scale_;
    return args.rows == 0 ? ok_status()
                          : launch(ctx, functions_[1], block_for_each(args.rows), &args);
  }

  const DType dtype_;
  const double scale_;
  const bool causal_;
  const int mask_;
  std::vector<GpuFunction> functions_;
};

class Forward final : public Attention {
 public:
  explicit Forward(const KernelSpec& spec) : Attention(spec, "AttentionWeights", 3) {}

  Status compute(KernelContext& ctx) override {
    const Tensor &q = ctx.input(0), &k = ctx.input(1), &v = ctx.input(2);
    TROUPE_TRY(const AttentionSizes s, AttentionSizes::of(q, k, v));
    TROUPE_TRY(const MaskOnGpu mask, mask_of(ctx, s));
    TROUPE_TRY(const Shape of_y, s.matrices(s.queries, s.out));
    TROUPE_TRY(const Shape of_stats, s.stats());
    TROUPE_TRY(Tensor y, ctx.allocate(dtype_, of_y));
    TROUPE_TRY(Tensor stats, ctx.allocate(stats_type(dtype_), of_stats));
    TROUPE_TRY(in_parts(ctx, s, mask, y, stats));
    ctx.set_output(0, std::move(y));
    ctx.set_output(1, std::move(stats));
    return ok_status();
  }

 private:
  Status in_parts(const KernelContext& ctx, const AttentionSizes& s, const MaskOnGpu& mask,
                  Tensor& y, Tensor& stats) const {
    TROUPE_TRY(const Shape of_scores, s.matrices(s.queries, s.keys));
    TROUPE_TRY(Tensor scores, ctx.allocate(dtype_, of_scores));
    void* x = scores.mutable_raw();
    TROUPE_TRY(product(ctx, {ctx.input(0).raw()}, {ctx.input(1).raw(), true}, x, s.count, s.queries,
                       s.keys, s.size));
    device::AttentionRowsArgs args{};
    args.scores = x, args.stats = stats.mutable_raw(), args.open = mask.args;
    args.rows = s.count * s.queries;
    TROUPE_TRY(rows(ctx, args));
    return product(ctx, {x}, {ctx.input(2).raw()}, y.mutable_raw(), s.count, s.queries, s.out,
                   s.keys);
  }
};

class Backward final : public Attention {
 public:
  explicit Backward(const KernelSpec& spec) : Attention(spec, "AttentionSlopes", 6) {}

  Status compute(KernelContext& ctx) override {
    TROUPE_TRY(const AttentionSizes s,
               AttentionSizes::of(ctx.input(1), ctx.input(2), ctx.input(3)));
    TROUPE_TRY(check_attention_outputs(s, ctx.input(0).shape(), ctx.input(4).shape(),
                                       ctx.input(5).shape()));
    TROUPE_TRY(const MaskOnGpu mask, mask_of(ctx, s));
    std::array<Tensor, 3> to;
    for (int i = 0; i < 3; ++i) {
      TROUPE_TRY(to[std::size_t(i)], ctx.allocate(dtype_, ctx.input(1 + i).shape()));
    }
    TROUPE_TRY(in_parts(ctx, s, mask, to));
    for (int i = 0; i < 3; ++i) ctx.set_output(i, std::move(to[std::size_t(i)]));
    return ok_status();
  }

 private:
  Status in_parts(const KernelContext& ctx, const AttentionSizes& s, const MaskOnGpu& mask,
                  std::array<Tensor, 3>& to) const {
    const void *dy = ctx.input(0).raw(), *q = ctx.input(1).raw(), *k = ctx.input(2).raw();
    TROUPE_TRY(const Shape of_scores, s.matrices(s.queries, s.keys));
    TROUPE_TRY(Tensor scores, ctx.allocate(dtype_, of_scores));
    TROUPE_TRY(Tensor slopes, ctx.allocate(dtype_, of_scores));
    void *p = scores.mutable_raw(), *ds = slopes.mutable_raw();
    TROUPE_TRY(product(ctx, {q}, {k, true}, p, s.count, s.queries, s.keys, s.size));
    TROUPE_TRY(
        product(ctx, {dy}, {ctx.input(3).raw(), true}, ds, s.count, s.queries, s.keys, s.out));
    device::AttentionRowsArgs args{};
    args.scores = p, args.slopes = ds, args.open = mask.args;
    args.stats = const_cast<void*>(ctx.input(5).raw());  // read, as there are slopes
    args.y = ctx.input(4).raw(), args.dy = dy;
    args.rows = s.count * s.queries, args.out = s.out;
    TROUPE_TRY(rows(ctx, args));
    TROUPE_TRY(product(ctx, {ds}, {k}, to[0].mutable_raw(), s.count, s.queries, s.size, s.keys));
    TROUPE_TRY(
        product(ctx, {ds, true}, {q}, to[1].mutable_raw(), s.count, s.keys, s.size, s.queries));
    return product(ctx, {p, true}, {dy}, to[2].mutable_raw(), s.count, s.keys, s.out, s.queries);
  }
};

}  // namespace

Expected<std::unique_ptr<Kernel>> attention(const KernelSpec& spec) {
  return std::unique_ptr<Kernel>(new Forward(spec));
}
Expected<std::unique_ptr<Kernel>> attention_grad(const KernelSpec& spec) {
  return std::unique_ptr<Kernel>(new Backward(spec));
}

}  // namespace troupe::cuda
