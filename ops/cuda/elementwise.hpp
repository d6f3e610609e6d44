// Kernels of GPUs that apply a formula to each element of inputs that broadcast.
//
//   .cpu(elementwise<formula::Softsign>).cuda(cuda::elementwise<formula::Softsign>)
//
// One text of the formula (ops/formulas/) is compiled for both. f16 and bf16 are computed as float
// and rounded once. Nothing of the device is compiled here: a kernel names what it needs by type
// (ops/device/elementwise.cuh), and NVRTC compiles that when a plan is loaded.
#pragma once

#include <type_traits>
#include <typeinfo>

#include "devices/cuda/gpu_kernel.hpp"
#include "ops/op.hpp"

namespace troupe::cuda {

// What inputs are taken: those that broadcast, or broadcast to the shape of the first; of one
// shape; or a second one with the last dimension of the first, or with its first dimensions.
enum class Shapes : std::uint8_t { broadcast, to_first, equal, last, first };

struct Formula {
  const std::type_info* type = nullptr;
  int inputs = 1;
  bool test = false;   // the result is bool
  bool wraps = false;  // signed integers have the bits of unsigned ones (support/elementwise.hpp)
  Shapes shapes = Shapes::broadcast;
};

// The kernel of attribute T.
Expected<std::unique_ptr<Kernel>> elementwise_kernel(const KernelSpec& spec,
                                                     const Formula& formula);

template <class F, Shapes shapes = Shapes::broadcast>
Expected<std::unique_ptr<Kernel>> elementwise(const KernelSpec& spec) {
  static_assert(std::is_empty_v<F>, "a formula has no state");
  constexpr auto result = [](auto... x) { return std::is_same_v<decltype(F{}(x...)), bool>; };
  Formula f{.type = &typeid(F), .shapes = shapes};
  if constexpr (std::is_invocable_v<F, float>)
    f.test = result(0.0f);
  else if constexpr (std::is_invocable_v<F, float, float>)
    f.inputs = 2, f.test = result(0.0f, 0.0f);
  else
    f.inputs = 3, f.test = result(0.0f, 0.0f, 0.0f);
  if constexpr (requires { F::wraps; }) f.wraps = F::wraps;
  return elementwise_kernel(spec, f);
}

// What the kernel of a formula of so many inputs launches, whose result is of the type of the
// inputs; with device::ElementwiseArgs.
GpuFunction elementwise_function(const std::type_info& formula, int inputs, DType dtype);

// Select: a condition, and two inputs of T that are moved.
Expected<std::unique_ptr<Kernel>> select(const KernelSpec& spec);
// Cast: from attribute `from` to `to`.
Expected<std::unique_ptr<Kernel>> cast(const KernelSpec& spec);

}  // namespace troupe::cuda
