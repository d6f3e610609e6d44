#include "ops/cuda/attention.hpp"

#include <array>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "devices/cuda/alignment.hpp"
#include "devices/cuda/cuda_device.hpp"
#include "ops/cuda/device_kernel.hpp"
#include "ops/cuda/element_types.hpp"
#include "ops/cuda/launch.hpp"
#include "ops/cuda/matmul.hpp"
#include "ops/cuda/strided.hpp"
#include "ops/cuda/workspace.hpp"
#include "ops/device/arguments.hpp"
#include "ops/kernels/nn/attention_sizes.hpp"
#include "ops/kernels/support/half_rows.hpp"

namespace troupe::cuda {
namespace {

// Memory of a device is aligned to more: only a part of a tensor may lie elsewhere.
constexpr std::uint32_t kLibraryAlignment = 16;

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
    if (mask_ < 0) return;
    functions_.push_back(copy_strided_function(DType::bool_));
    if (!attends()) return;
    for (const char* of_library : {"AttentionBias", "AttentionClose"})
      functions_.push_back({device_type(of_library, {element_type(dtype_)})});
  }
  std::span<GpuFunction> functions() override { return functions_; }
  bool multiplies() const override { return true; }
  bool attends() const override { return is_half(dtype_); }

 protected:
  // What the library adds to scores where there is a mask, and which queries it closes.
  struct Bias {
    Tensor values, closed;
  };

  // Null where it is not asked: for other types, and for what has no terms or is not aligned.
  Attentions* library_for(const KernelContext& ctx, const AttentionSizes& s,
                          std::initializer_list<const void*> pointers) const {
    const bool empty = s.count == 0 || s.queries == 0 || s.keys == 0 || s.size == 0 || s.out == 0;
    if (!attends() || empty) return nullptr;
    for (const void* pointer : pointers)
      if (alignment_of(pointer, kLibraryAlignment) != kLibraryAlignment) return nullptr;
    return static_cast<CudaDevice&>(ctx.device()).attentions();
  }

  DnnAttention description(const AttentionSizes& s, const MaskOnGpu& mask, bool gradient) const {
    const Problems problems = Problems::of(s);
    DnnAttention a{gradient, dtype_, problems.outer, problems.inner, s.queries,
                   s.keys,   s.size, s.out,          causal_};
    if (!mask.args.mask) return a;
    a.bias_batch = mask.args.of_outer == 0 ? 1 : problems.outer;
    a.bias_heads = mask.args.of_inner == 0 ? 1 : problems.inner;
    return a;
  }

  // Scores that must not count are lowered by as much as f16 can say: cuDNN is reported not to take
  // -inf.
  Expected<Bias> bias_of(const KernelContext& ctx, const DnnAttention& a,
                         const MaskOnGpu& mask) const {
    constexpr double kNever = -65504;
    Bias bias;
    const std::int64_t rows = a.bias_batch * a.bias_heads * a.queries;
    TROUPE_TRY(bias.values, ctx.allocate(dtype_, Shape{rows, a.keys}));
    TROUPE_TRY(bias.closed, ctx.allocate(DType::u8, Shape{rows}));
    device::AttentionBiasArgs args{bias.values.mutable_raw(), bias.closed.mutable_raw(), mask.args,
                                   rows, kNever};
    args.open.inner = a.bias_heads;
    TROUPE_TRY(launch(ctx, functions_[3], block_for_each(rows), &args));
    return bias;
  }
  // Queries that look nowhere: the library's scores of theirs are all lowered.
  Status close(const KernelContext& ctx, const AttentionSizes& s, const DnnAttention& a,
               const Bias& bias, Tensor& y, Tensor& stats) const {
    device::AttentionCloseArgs args{};
    args.y = y.mutable_raw(), args.stats = stats.mutable_raw(), args.closed = bias.closed.raw();
    args.rows = s.count * s.queries, args.queries = s.queries, args.inner = a.heads;
    args.out = s.out;
    args.of_inner = a.bias_heads == 1 ? 0 : s.queries;
    args.of_outer = a.bias_batch == 1 ? 0 : a.bias_heads * s.queries;
    return launch(ctx, functions_[4], block_for_each(args.rows), &args);
  }

  // `prepare` makes what the operands need, once a plan runs.
  static Status by_library(const KernelContext& ctx, Attentions& attentions, const DnnAttention& a,
                           const DnnAttentionOperands& operands, FunctionRef<Status()> prepare) {
    auto& device = static_cast<CudaDevice&>(ctx.device());
    Tensor workspace;
    const auto trial = [&](const AttentionPlan& candidate) -> Expected<double> {
      TROUPE_TRY(prepare());
      TROUPE_TRY(void* space, workspace_of(ctx, candidate.workspace(), workspace));
      Expected<double> took = unavailable("the stream has failed: nothing is measured");
      const Attentions::Turn turn(attentions);
      TROUPE_TRY(device.issue([&](StreamHandle stream) {
        took = attentions.time(turn, candidate, operands, space, stream);
        return took.status();
      }));
      return took;
    };
    TROUPE_TRY(const Attentions::PlanPtr plan, attentions.plan(a, trial));
    TROUPE_TRY(prepare());
    TROUPE_TRY(void* space, workspace_of(ctx, plan->workspace(), workspace));
    const Attentions::Turn turn(attentions);
    return device.issue(
        [&](StreamHandle stream) { return attentions.run(turn, *plan, operands, space, stream); });
  }

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
    TROUPE_TRY(attend(ctx, s, mask, y, stats));
    ctx.set_output(0, std::move(y));
    ctx.set_output(1, std::move(stats));
    return ok_status();
  }

 private:
  Status attend(const KernelContext& ctx, const AttentionSizes& s, const MaskOnGpu& mask, Tensor& y,
                Tensor& stats) const {
    DnnAttentionOperands o{};
    o.q = ctx.input(0).raw(), o.k = ctx.input(1).raw(), o.v = ctx.input(2).raw();
    o.y = y.raw(), o.stats = stats.raw(), o.scale = float(scale_);
    Attentions* library = library_for(ctx, s, {o.q, o.k, o.v, o.y, o.stats});
    if (!library) return in_parts(ctx, s, mask, y, stats);
    const DnnAttention a = description(s, mask, false);
    Bias bias;
    const auto prepare = [&]() -> Status {
      if (a.bias_batch == 0 || bias.values.defined()) return ok_status();
      TROUPE_TRY(bias, bias_of(ctx, a, mask));
      o.bias = bias.values.raw();
      return ok_status();
    };
    Status done = by_library(ctx, *library, a, o, prepare);
    if (library->leaves(done)) return in_parts(ctx, s, mask, y, stats);
    TROUPE_TRY(std::move(done));
    return a.bias_batch == 0 ? ok_status() : close(ctx, s, a, bias, y, stats);
  }

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
    TROUPE_TRY(differentiate(ctx, s, mask, to));
    for (int i = 0; i < 3; ++i) ctx.set_output(i, std::move(to[std::size_t(i)]));
    return ok_status();
  }

 private:
  Status differentiate(const KernelContext& ctx, const AttentionSizes& s, const MaskOnGpu& mask,
                       std::array<Tensor, 3>& to) const {
    DnnAttentionOperands o{};
    o.dy = ctx.input(0).raw(), o.q = ctx.input(1).raw(), o.k = ctx.input(2).raw();
    o.v = ctx.input(3).raw(), o.y = ctx.input(4).raw(), o.stats = ctx.input(5).raw();
    o.dq = to[0].raw(), o.dk = to[1].raw(), o.dv = to[2].raw(), o.scale = float(scale_);
    Attentions* library =
        library_for(ctx, s, {o.dy, o.q, o.k, o.v, o.y, o.stats, o.dq, o.dk, o.dv});
    if (!library) return in_parts(ctx, s, mask, to);
    const DnnAttention a = description(s, mask, true);
    Bias bias;
    Tensor sums;
    const auto prepare = [&]() -> Status {
      if (sums.defined()) return ok_status();
      TROUPE_TRY(sums, ctx.allocate(DType::f32, ctx.input(5).shape()));
      o.sums = sums.raw();
      if (a.bias_batch == 0) return ok_status();
      TROUPE_TRY(bias, bias_of(ctx, a, mask));
      o.bias = bias.values.raw();
      return ok_status();
    };
    Status done = by_library(ctx, *library, a, o, prepare);
    return library->leaves(done) ? in_parts(ctx, s, mask, to) : done;
  }

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
