#include "ops/cuda/update.hpp"

#include <array>
#include <vector>

#include "ops/cuda/device_kernel.hpp"
#include "ops/cuda/element_types.hpp"
#include "ops/cuda/launch.hpp"
#include "ops/device/arguments.hpp"

namespace troupe::cuda {
namespace {

// Which inputs a rule has where.
struct Operands {
  int values = 1;  // the first inputs
  int step = -1;   // behind them; -1: none
  int gradient = 0;
  std::vector<int> scalars;
};

class Update final : public DeviceKernel {
 public:
  Update(DType dtype, const std::string& rule, Operands operands)
      : dtype_(dtype),
        operands_(std::move(operands)),
        function_{device_type("Update", {rule, element_type(dtype)})} {}

  std::span<GpuFunction> functions() override { return {&function_, 1}; }

  Status compute(KernelContext& ctx) override {
    device::UpdateArgs args{};
    args.n = ctx.input(0).elements();
    std::vector<Tensor> results;
    for (int i = 0; i < operands_.values; ++i) {
      args.old_values[i] = ctx.input(i).raw();
      TROUPE_TRY(Tensor now, ctx.reuse_or_allocate(i, dtype_, ctx.input(i).shape()));
      args.new_values[i] = now.mutable_raw();
      results.push_back(std::move(now));
    }
    if (operands_.step >= 0) {
      args.step = ctx.input(operands_.step).raw();
      TROUPE_TRY(Tensor step, ctx.allocate(DType::i64, Shape{}));
      args.new_step = step.mutable_raw();
      results.push_back(std::move(step));
    }
    args.gradient = ctx.input(operands_.gradient).raw();
    for (std::size_t i = 0; i < operands_.scalars.size(); ++i)
      args.scalars[i] = ctx.input(operands_.scalars[i]).raw();
    // Also without elements, for the step count.
    TROUPE_TRY(launch(ctx, function_, grid_for(args.n), &args));
    for (std::size_t i = 0; i < results.size(); ++i) ctx.set_output(int(i), std::move(results[i]));
    return ok_status();
  }

 private:
  DType dtype_;
  Operands operands_;
  GpuFunction function_;
};

// `variant`: ", true", of a formula that has several.
std::string rule_of(const char* name, DType dtype, const char* variant = "") {
  return std::string("troupe::formula::") + name + "<" + element_type(dtype) + variant + ">";
}
const char* variant_of(bool is) { return is ? ", true" : ", false"; }

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
  Operands operands{.values = values, .gradient = values + scalars};
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
  Operands operands{.values = 3, .step = 3, .gradient = 8, .scalars = {4, 5, 6, 7}};
  if (decays) operands.scalars.push_back(9);
  return std::unique_ptr<Kernel>(new Update(
      spec.type(), rule_of("AdamStep", spec.type(), variant_of(decays)), std::move(operands)));
}

}  // namespace troupe::cuda
