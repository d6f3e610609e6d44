#include "ops/cuda/follow.hpp"

#include <typeinfo>

#include "ops/cuda/elementwise.hpp"
#include "ops/cuda/launch.hpp"
#include "ops/cuda/moves.hpp"
#include "ops/device/arguments.hpp"
#include "ops/formulas/arithmetic.hpp"
#include "ops/formulas/relu.hpp"

namespace troupe::cuda {

std::vector<GpuFunction> functions_that_follow(DType dtype, bool relu) {
  std::vector<GpuFunction> functions{elementwise_function(typeid(formula::Add), 2, dtype)};
  if (relu) functions.push_back(elementwise_function(typeid(formula::Relu), 1, dtype));
  return functions;
}

Status follow(const KernelContext& ctx, std::span<const GpuFunction> functions, const Tensor* bias,
              Tensor& y) {
  if (bias) {
    TROUPE_TRY(const auto meet, Broadcast<2>::of({&y.shape(), &bias->shape()}));
    device::ElementwiseArgs<2> add{};
    add.n = y.elements(), add.walk = walk_of<2>(meet);
    add.in[0] = y.raw(), add.in[1] = bias->raw(), add.out = y.mutable_raw();
    TROUPE_TRY(launch(ctx, functions[0], grid_for(add.n), &add));
  }
  if (functions.size() == 1) return ok_status();
  TROUPE_TRY(const auto whole, Broadcast<1>::of({&y.shape()}));
  device::ElementwiseArgs<1> relu{};
  relu.n = y.elements(), relu.walk = walk_of<1>(whole);
  relu.in[0] = y.raw(), relu.out = y.mutable_raw();
  return launch(ctx, functions[1], grid_for(relu.n), &relu);
}

}  // namespace troupe::cuda
