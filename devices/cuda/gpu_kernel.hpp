// GpuKernel: a kernel whose work is done by functions of a GPU, which NVRTC compiles.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "devices/cuda/driver_types.hpp"
#include "devices/kernel.hpp"

namespace troupe::cuda {

// The text of device code: files by the names that they include each other by, and what a program
// includes to have all of it. Of static lifetime.
struct DeviceCode {
  struct File {
    const char* name;
    const char* text;
  };
  std::span<const File> files;
  std::string_view prologue;
};

// A function of a GPU, as device code names it: `type` is a struct with plain data Args and
//   static void run(const Args&);
// which all threads of a launch call.
struct GpuFunction {
  std::string type;
  // That a thread is to have at most, which `troupe kernels` checks. 64 lets 1,024 threads onto a
  // multiprocessor.
  int registers = 64;
  FunctionHandle handle = nullptr;  // set by Device::prepare
};

// The name of the function in a program, and in profilers: "Elementwise_Add_f32_f32_f32" for
// "troupe::device::Elementwise<troupe::formula::Add, troupe::device::f32, ...>".
std::string function_name(std::string_view type);

class GpuKernel : public Kernel {
 public:
  // Whatever compute() may launch. Part of the kernel.
  virtual std::span<GpuFunction> functions() = 0;
  virtual const DeviceCode& code() const = 0;
  // Whether it has products of matrices computed by the device's library, if it has one
  // (CudaDevice::products).
  virtual bool multiplies() const { return false; }
  // The same of convolutions (CudaDevice::convolutions). A kernel that convolves is told whether
  // there is such a library before it is asked for its functions.
  virtual bool convolves() const { return false; }
  virtual void convolve_by_library(bool) {}
  // Whether it has attention computed by the device's library, if it has one
  // (CudaDevice::attentions).
  virtual bool attends() const { return false; }
};

// How many threads a launch has.
struct Grid {
  unsigned blocks = 1, threads = 1;
};
// Issues a launch on the context's stream; `args` is the function's Args, which the call copies.
// REQUIRES: a CUDA device that was prepared for the kernel.
Status launch(const KernelContext& ctx, const GpuFunction& function, Grid grid, void* args);

}  // namespace troupe::cuda
