// What the functions of GPUs take, compiled ahead of time.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "devices/cuda/compiler.hpp"
#include "devices/cuda/resources.hpp"

namespace troupe::cuda {

struct Measured {
  std::string name;  // function_name()
  int budget = 0;    // GpuFunction::registers
  Resources resources;
  std::size_t bytes = 0;  // of its image
  // Why it must not stay so: it does not compile, spills, takes more registers than its budget, the
  // compiler does not tell, or its image cannot be written where it should. Empty: it may.
  std::string fault;

  std::string family() const { return name.substr(0, name.find('_')); }  // "MatMul" of MatMul_f32
};

// Compiles functions of device_code(), in their order, and leaves the images in the compiler's
// cache, where devices find them.
std::vector<Measured> measure(const Compiler& compiler, std::span<const GpuFunction> functions,
                              const std::string& architecture);

}  // namespace troupe::cuda
