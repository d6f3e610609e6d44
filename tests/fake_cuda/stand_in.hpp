// What libraries have in common that stand in for NVIDIA's: the fake driver beside them, element
// types, and what the environment tells them.
#pragma once

#include <dlfcn.h>

#include <bit>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <filesystem>

#include "core/dtype.hpp"
#include "devices/cuda/driver.hpp"
#include "tests/fake_cuda/fake_cuda.hpp"

namespace troupe::fake_cuda {

// The fake driver of the same build, which the process has opened before.
inline void* driver() {
  static void* const opened = [] {
    Dl_info self{};
    dladdr(reinterpret_cast<void*>(&driver), &self);
    const auto folder = std::filesystem::path(self.dli_fname).parent_path().parent_path();
    return dlopen((folder / "fake-cuda/libcuda.so.1").c_str(), RTLD_NOW | RTLD_LOCAL);
  }();
  return opened;
}
template <class Function>
Function of_driver(const char* name) {
  return reinterpret_cast<Function>(dlsym(driver(), name));
}

// The number behind "name=" in a variable of the environment.
inline int setting_in(const char* variable, const char* name, int otherwise = 0) {
  const char* all = std::getenv(variable);
  const char* found = all ? std::strstr(all, name) : nullptr;
  return found ? std::atoi(found + std::strlen(name) + 1) : otherwise;
}

// A kernel of this library's, in the fake driver.
struct OwnKernel {
  cuda::FunctionHandle function = nullptr;
  cuda::ModuleHandle module = nullptr;

  // `bytes`: of its one argument. False: the driver is not there, or refuses.
  bool load(const char* name, Run run, std::size_t bytes) {
    if (!driver()) return false;
    of_driver<Register>("troupe_fake_register")(name, run, &bytes, 1);
    return of_driver<decltype(cuda::DriverTable::cuModuleLoadData)>("cuModuleLoadData")(
               &module, kImage) == cuda::kSuccess &&
           of_driver<decltype(cuda::DriverTable::cuModuleGetFunction)>("cuModuleGetFunction")(
               &function, module, name) == cuda::kSuccess;
  }
  void unload() {
    of_driver<decltype(cuda::DriverTable::cuModuleUnload)>("cuModuleUnload")(module);
  }
  bool launch(cuda::StreamHandle stream, void* argument) const {
    void* arguments[] = {argument};
    return of_driver<decltype(cuda::DriverTable::cuLaunchKernel)>("cuLaunchKernel")(
               function, 1, 1, 1, 1, 1, 1, 0, stream, arguments, nullptr) == cuda::kSuccess;
  }
};

// Elements in memory, and the type that they are added up in.
template <class T>
struct Narrow {
  using Sum = float;
  static float load(const void* p, std::int64_t i) { return float(static_cast<const T*>(p)[i]); }
  static void store(void* p, std::int64_t i, float x) { static_cast<T*>(p)[i] = T(x); }
};
using Half = Narrow<half>;
using Bf16 = Narrow<bfloat16>;
// f32 with 10 bits behind the point.
inline float to_tf32(float x) {
  const auto bits = std::bit_cast<std::uint32_t>(x);
  return x != x ? x : std::bit_cast<float>((bits + 0xfff + (bits >> 13 & 1)) & ~0x1fffu);
}
template <class T>
struct Plain {
  using Sum = T;
  static T load(const void* p, std::int64_t i) { return static_cast<const T*>(p)[i]; }
  static void store(void* p, std::int64_t i, T x) { static_cast<T*>(p)[i] = x; }
};

}  // namespace troupe::fake_cuda
