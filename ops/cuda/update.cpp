#include "ops/cuda/update.hpp"

#include <algorithm>
#include <array>
#include <vector>

#include "ops/cuda/device_kernel.hpp"
#include "ops/cuda/element_types.hpp"
#include "ops/cuda/launch.hpp"
#include "ops/cuda/moves.hpp"
#include "ops/cuda/rows.hpp"
#include "ops/device/arguments.hpp"

namespace troupe::cuda {
namespace {

// A thread begins with what its elements share, such as powers of f64 in Adam's rule, which take
// some GPUs as long as dozens of elements. So there are only threads enough to keep a GPU busy.
Grid grid_for_update(std::int64_t n) {
  constexpr unsigned kBlocks = 2048;
  const Grid grid = grid_for(n);
  return {std::min(grid.blocks, kBlocks), grid.threads};
}

// Which inputs a rule has where.
struct UpdateOperands {
  int values = 1;  // the first inputs
  int step = -1;   // behind them; -1: none
  int gradient = 0;
  std::vector<int> scalars;
};

// The new values and the step count, whose memory `args` has. Also fills in what the rule reads.
Expected<std::vector<Tensor>> begin_update(const KernelContext& ctx, DType dtype,
                                           const UpdateOperands& operands,
                                           device::UpdateArgs& args) {
  args.n = ctx.input(0).elements();
  std::vector<Tensor> results;
  for (int i = 0; i < operands.values; ++i) {
    args.old_values[i] = ctx.input(i).raw();
    TROUPE_TRY(Tensor now, ctx.reuse_or_allocate(i, dtype, ctx.input(i).shape()));
    args.new_values[i] = now.mutable_raw();
    results.push_back(std::move(now));
  }
  if (operands.step >= 0) {
    args.step = ctx.input(operands.step).raw();
    TROUPE_TRY(Tensor step, ctx.allocate(DType::i64, Shape{}));
    args.new_step = step.mutable_raw();
    results.push_back(std::move(step));
  }
  args.gradient = ctx.input(operands.gradient).raw();
  for (std::size_t i = 0; i < operands.scalars.size(); ++i)
    args.scalars[i] = ctx.input(operands.scalars[i]).raw();
  return results;
}

void set_outputs(KernelContext& ctx, std::vector<Tensor> results) {
  for (std::size_t i = 0; i < results.size(); ++i) ctx.set_output(int(i), std::move(results[i]));
}

class Update final : public DeviceKernel {
 public:
  Update(DType dtype, const std::string& rule, UpdateOperands operands)
      : dtype_(dtype),
        operands_(std::move(operands)),
        function_{device_type("Update", {rule, element_type(dtype)})} {}

  std::span<GpuFunction> functions() override { return {&function_, 1}; }

  Status compute(KernelContext& ctx) override {
    device::UpdateArgs args{};
    TROUPE_TRY(std::vector<Tensor> results, begin_update(ctx, dtype_, operands_, args));
    // Also without elements, for the step count.
    TROUPE_TRY(launch(ctx, function_, grid_for_update(args.n), &args));
    set_outputs(ctx, std::move(results));
    return ok_status();
  }

 private:
  DType dtype_;
  UpdateOperands operands_;
  GpuFunction function_;
};

// `variant`: ", true", of a formula that has several.
std::string rule_of(const char* name, DType dtype, const char* variant = "") {
  return std::string("troupe::formula::") + name + "<" + element_type(dtype) + variant + ">";
}
const char* variant_of(bool is) { return is ? ", true" : ", false"; }

// What a rule of rows is called, and how many values it has: the first inputs, and the step behind
// them. Scalars are all other inputs before the indices and the rows.
struct RowsRule {
  std::string type;
  int values = 1;
  bool counts = false;
};
RowsRule rows_rule(const KernelSpec& spec) {
  const std::string& op = spec.node.op;
  const auto rule = [&](const char* name, int values, const char* variant = "") {
    return RowsRule{rule_of(name, spec.type(), variant), values, false};
  };
  if (op == "ApplySparseMomentum")
    return rule("MomentumStep", 2, variant_of(spec.bool_attr("nesterov")));
  if (op == "ApplySparseAdagrad") return rule("AdagradStep", 2);
  if (op == "ApplySparseProximalGradientDescent") return rule("ProximalStep", 1);
  if (op == "ApplySparseProximalAdagrad") return rule("ProximalAdagradStep", 2);
  if (op == "ApplySparseAdadelta") return rule("AdadeltaStep", 3);
  if (op == "ApplySparseRMSProp") return rule("RmsPropStep", 3);
  if (op == "ApplySparseCenteredRMSProp") return rule("CenteredRmsPropStep", 4);
  if (op == "ApplySparseFtrl") return rule("FtrlStep", 3);
  if (op == "ApplySparseAdam" || op == "ApplySparseAdamW") {
    RowsRule adam = rule("AdamStep", 3, variant_of(op == "ApplySparseAdamW"));
    adam.counts = true;
    return adam;
  }
  TROUPE_CHECK(op == "ApplySparseGradientDescent", "a rule of rows that is not listed here");
  return rule("DescendStep", 1);
}

// Copies what is at `from` to `now`, unless it is there.
Status bring(const KernelContext& ctx, const GpuFunction& copy, const void* from, Tensor& now) {
  if (now.raw() == from) return ok_status();
  return copy_elements(ctx, copy, from, now.mutable_raw(), now.elements());
}

class UpdateRows final : public DeviceKernel {
 public:
  UpdateRows(const KernelSpec& spec, PlaceRows place)
      : dtype_(spec.type()),
        rule_(rows_rule(spec)),
        place_(place),
        functions_{GpuFunction{device_type("UpdateRows", {rule_.type, element_type(dtype_)})},
                   GpuFunction{copy_type(dtype_)}} {}

  std::span<GpuFunction> functions() override { return functions_; }

  Status compute(KernelContext& ctx) override {
    const int indices = ctx.inputs() - 2;
    UpdateOperands operands{.values = rule_.values, .gradient = indices + 1};
    if (rule_.counts) operands.step = rule_.values;
    for (int i = rule_.values + rule_.counts; i < indices; ++i) operands.scalars.push_back(i);
    const Shape shape = ctx.input(0).shape();
    TROUPE_TRY(const PlacedRows placed,
               place_(ctx.input(0), ctx.input(indices), ctx.input(operands.gradient)));
    TROUPE_TRY(const RowGroups groups, RowGroups::of(ctx, placed.order, placed.places));
    device::UpdateRowsArgs args{};
    TROUPE_TRY(std::vector<Tensor> results, begin_update(ctx, dtype_, operands, args.update));
    for (int i = 0; i < operands.values; ++i)  // other rows stay as they are
      TROUPE_TRY(bring(ctx, functions_[1], args.update.old_values[i], results[std::size_t(i)]));
    std::copy_n(args.update.new_values, operands.values, args.update.old_values);
    args.groups = groups.there.raw();
    args.inner = shape.elements(1, shape.rank());
    args.groups_count = args.inner == 0 ? 0 : groups.count;
    // Also without rows, for the step count.
    TROUPE_TRY(launch(ctx, functions_[0], grid_for_update(args.groups_count * args.inner), &args));
    set_outputs(ctx, std::move(results));
    return ok_status();
  }

 private:
  const DType dtype_;
  const RowsRule rule_;
  const PlaceRows place_;
  std::array<GpuFunction, 2> functions_;
};

const char* fold_of(const std::string& op) {
  return op == "ScatterAdd" ? "AddRows" : op == "ScatterSub" ? "SubtractRows" : "LastRow";
}

class ScatterRows final : public DeviceKernel {
 public:
  ScatterRows(const KernelSpec& spec, PlaceRows place)
      : dtype_(spec.type()),
        place_(place),
        functions_{GpuFunction{fold_type(fold_of(spec.node.op), without_sign(dtype_))},
                   GpuFunction{copy_type(dtype_)}} {}
  std::span<GpuFunction> functions() override { return functions_; }

  Status compute(KernelContext& ctx) override {
    const Tensor &old = ctx.input(0), &rows = ctx.input(2);
    TROUPE_TRY(const PlacedRows placed, place_(old, ctx.input(1), rows));
    const Shape shape = old.shape();
    const void* from = old.raw();
    TROUPE_TRY(Tensor now, ctx.reuse_or_allocate(0, dtype_, shape));
    TROUPE_TRY(bring(ctx, functions_[1], from, now));
    const RowView view{1, shape.dim(0), shape.elements(1, shape.rank())};
    TROUPE_TRY(const RowGroups groups, RowGroups::of(ctx, placed.order, placed.places));
    TROUPE_TRY(fold_rows(ctx, functions_[0], rows, groups, view, now));
    ctx.set_output(0, std::move(now));
    return ok_status();
  }

 private:
  const DType dtype_;
  const PlaceRows place_;
  std::array<GpuFunction, 2> functions_;
};

class Lamb final : public DeviceKernel {
 public:
  explicit Lamb(DType dtype) : dtype_(dtype) {
    const char* const names[] = {"LambMoments", "LambRate", "LambMove"};
    for (std::size_t i = 0; i < functions_.size(); ++i)
      functions_[i].type = device_type(names[i], {element_type(dtype)});
    if (dtype == DType::f64) functions_[0].registers = kRegistersOfLongF64;
  }
  std::span<GpuFunction> functions() override { return functions_; }

  Status compute(KernelContext& ctx) override {
    device::LambArgs args{};
    TROUPE_TRY(std::vector<Tensor> results, begin_update(ctx, dtype_, operands_, args.update));
    const Grid grid = grid_for(args.update.n);
    args.blocks = grid.blocks;
    TROUPE_TRY(Tensor sums, ctx.allocate(DType::f64, Shape{2 * args.blocks + 1}));
    args.sums = sums.mutable_raw();
    TROUPE_TRY(launch(ctx, functions_[0], grid, &args));
    TROUPE_TRY(launch(ctx, functions_[1], block_for_each(1), &args));
    TROUPE_TRY(launch(ctx, functions_[2], grid, &args));
    set_outputs(ctx, std::move(results));
    return ok_status();
  }

 private:
  const DType dtype_;
  const UpdateOperands operands_{.values = 3, .step = 3, .gradient = 8, .scalars = {4, 5, 6, 7, 9}};
  std::array<GpuFunction, 3> functions_;
};

class Descend final : public DeviceKernel {
 public:
  explicit Descend(DType dtype)
      : dtype_(dtype),
        function_{device_type("Elementwise",
                              {"troupe::formula::Descend", element_type(dtype), element_type(dtype),
                               element_type(dtype), element_type(dtype)})} {}

  std::span<GpuFunction> functions() override { return {&function_, 1}; }

  Status compute(KernelContext& ctx) override {
    device::ElementwiseArgs<3> args{};
    args.n = ctx.input(0).elements();
    TROUPE_TRY(Tensor now, ctx.reuse_or_allocate(0, dtype_, ctx.input(0).shape()));
    for (int i = 0; i < 3; ++i) args.in[i] = ctx.input(i).raw();
    args.out = now.mutable_raw();
    args.walk.rank = 1;
    args.walk.dims[0] = args.n;
    args.walk.strides[0][0] = args.walk.strides[2][0] = 1;
    if (args.n != 0) TROUPE_TRY(launch(ctx, function_, grid_for(args.n), &args));
    ctx.set_output(0, std::move(now));
    return ok_status();
  }

 private:
  DType dtype_;
  GpuFunction function_;
};

}  // namespace

Expected<std::unique_ptr<Kernel>> update_rows(const KernelSpec& spec, PlaceRows place) {
  return std::unique_ptr<Kernel>(new UpdateRows(spec, place));
}
Expected<std::unique_ptr<Kernel>> scatter_rows(const KernelSpec& spec, PlaceRows place) {
  return std::unique_ptr<Kernel>(new ScatterRows(spec, place));
}
Expected<std::unique_ptr<Kernel>> lamb(const KernelSpec& spec) {
  return std::unique_ptr<Kernel>(new Lamb(spec.type()));
}

Expected<std::unique_ptr<Kernel>> descend(const KernelSpec& spec) {
  return std::unique_ptr<Kernel>(new Descend(spec.type()));
}

Expected<std::unique_ptr<Kernel>> momentum(const KernelSpec& spec) {
  return std::unique_ptr<Kernel>(new Update(
      spec.type(), rule_of("MomentumStep", spec.type(), variant_of(spec.bool_attr("nesterov"))),
      {.values = 2, .gradient = 3, .scalars = {2, 4}}));
}

namespace {

// Values, scalars, gradient, in this order.
std::unique_ptr<Kernel> plain(const char* rule, int values, int scalars, const KernelSpec& spec) {
  UpdateOperands operands{.values = values, .gradient = values + scalars};
  for (int i = 0; i < scalars; ++i) operands.scalars.push_back(values + i);
  return std::unique_ptr<Kernel>(
      new Update(spec.type(), rule_of(rule, spec.type()), std::move(operands)));
}

}  // namespace

Expected<std::unique_ptr<Kernel>> adagrad(const KernelSpec& spec) {
  return plain("AdagradStep", 2, 3, spec);
}
Expected<std::unique_ptr<Kernel>> proximal(const KernelSpec& spec) {
  return plain("ProximalStep", 1, 3, spec);
}
Expected<std::unique_ptr<Kernel>> proximal_adagrad(const KernelSpec& spec) {
  return plain("ProximalAdagradStep", 2, 4, spec);
}
Expected<std::unique_ptr<Kernel>> adadelta(const KernelSpec& spec) {
  return plain("AdadeltaStep", 3, 3, spec);
}
Expected<std::unique_ptr<Kernel>> rmsprop(const KernelSpec& spec) {
  return plain("RmsPropStep", 3, 4, spec);
}
Expected<std::unique_ptr<Kernel>> centered_rmsprop(const KernelSpec& spec) {
  return plain("CenteredRmsPropStep", 4, 4, spec);
}
Expected<std::unique_ptr<Kernel>> ftrl(const KernelSpec& spec) {
  return plain("FtrlStep", 3, 4, spec);
}
Expected<std::unique_ptr<Kernel>> moving_average(const KernelSpec& spec) {
  return plain("AverageStep", 1, 1, spec);
}

Expected<std::unique_ptr<Kernel>> adam(const KernelSpec& spec) {
  const bool decays = spec.node.op == "ApplyAdamW";
  UpdateOperands operands{.values = 3, .step = 3, .gradient = 8, .scalars = {4, 5, 6, 7}};
  if (decays) operands.scalars.push_back(9);
  return std::unique_ptr<Kernel>(new Update(
      spec.type(), rule_of("AdamStep", spec.type(), variant_of(decays)), std::move(operands)));
}

}  // namespace troupe::cuda
