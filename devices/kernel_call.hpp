// Calls kernels and catches their exceptions.
#pragma once

#include "devices/kernel.hpp"

namespace troupe {

// The current exception as a status: that of an Error, which tensors and shapes throw on invalid
// access (Tensor::data of another type); resource_exhausted for std::bad_alloc; else internal.
// REQUIRES: a catch block.
Status status_of_exception();

// Calls the kernel. A kernel returns its errors, but may call code that throws: that fails only its
// node, too.
inline Status call_kernel(Kernel& kernel, KernelContext& ctx) {
  try {
    return kernel.compute(ctx);
  } catch (...) {
    return status_of_exception();
  }
}

}  // namespace troupe
