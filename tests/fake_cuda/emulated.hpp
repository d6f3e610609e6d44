// The device kernels of this build, compiled for the emulated GPU.
#pragma once

#include <cstddef>
#include <span>

#include "tests/fake_cuda/simt.hpp"

namespace troupe::simt {

struct EmulatedKernel {
  const char* name;  // as cuda::function_name gives it
  std::size_t args_bytes;
  void (*body)(const void* args);
};

template <class K>
constexpr EmulatedKernel emulated(const char* name) {
  return {name, sizeof(typename K::Args),
          [](const void* args) { K::run(*static_cast<const typename K::Args*>(args)); }};
}

// All that any op may ask for: written by troupe-gen --gpu-functions.
std::span<const EmulatedKernel> emulated_kernels();

}  // namespace troupe::simt
