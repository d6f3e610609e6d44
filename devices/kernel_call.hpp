// Calls of kernels that outlive what a kernel throws.
#pragma once

#include "devices/kernel.hpp"

namespace troupe {

// The exception in flight as the status of the kernel that threw it: that of an Error, which
// tensors and shapes throw when they are asked for what is not there (Tensor::data of another
// type); resource_exhausted where there was no memory; else internal. REQUIRES: a catch block.
Status status_of_exception();

// What the kernel's call gives. A kernel returns its errors, but it may call code that throws: that
// fails its node as well, and no other.
inline Status call_kernel(Kernel& kernel, KernelContext& ctx) {
  try {
    return kernel.compute(ctx);
  } catch (...) {
    return status_of_exception();
  }
}

}  // namespace troupe
