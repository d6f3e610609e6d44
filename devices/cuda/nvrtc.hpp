// Nvrtc: NVIDIA's compiler of CUDA programs as a table of functions, opened at run time.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/status.hpp"
#include "devices/cuda/gpu_kernel.hpp"
#include "devices/cuda/library.hpp"

namespace troupe::cuda {

using ProgramHandle = struct OpaqueProgram*;  // nvrtcProgram
using CompileResult = int;                    // nvrtcResult

struct NvrtcTable {
  CompileResult (*nvrtcVersion)(int* major, int* minor) = nullptr;
  const char* (*nvrtcGetErrorString)(CompileResult) = nullptr;
  CompileResult (*nvrtcCreateProgram)(ProgramHandle*, const char* source, const char* name,
                                      int headers, const char* const* texts,
                                      const char* const* names) = nullptr;
  CompileResult (*nvrtcDestroyProgram)(ProgramHandle*) = nullptr;
  CompileResult (*nvrtcAddNameExpression)(ProgramHandle, const char* expression) = nullptr;
  CompileResult (*nvrtcCompileProgram)(ProgramHandle, int options,
                                       const char* const* texts) = nullptr;
  CompileResult (*nvrtcGetLoweredName)(ProgramHandle, const char* expression,
                                       const char** lowered) = nullptr;
  CompileResult (*nvrtcGetNumSupportedArchs)(int* count) = nullptr;
  CompileResult (*nvrtcGetSupportedArchs)(int* architectures) = nullptr;  // 90 is sm_90
  CompileResult (*nvrtcGetCUBINSize)(ProgramHandle, std::size_t* bytes) = nullptr;
  CompileResult (*nvrtcGetCUBIN)(ProgramHandle, char* to) = nullptr;
  CompileResult (*nvrtcGetPTXSize)(ProgramHandle, std::size_t* bytes) = nullptr;
  CompileResult (*nvrtcGetPTX)(ProgramHandle, char* to) = nullptr;
  CompileResult (*nvrtcGetProgramLogSize)(ProgramHandle, std::size_t* bytes) = nullptr;
  CompileResult (*nvrtcGetProgramLog)(ProgramHandle, char* to) = nullptr;

  template <class Self, class Visit>
  static void each(Self& self, Visit&& visit) {
    visit("nvrtcVersion", self.nvrtcVersion);
    visit("nvrtcGetErrorString", self.nvrtcGetErrorString);
    visit("nvrtcCreateProgram", self.nvrtcCreateProgram);
    visit("nvrtcDestroyProgram", self.nvrtcDestroyProgram);
    visit("nvrtcAddNameExpression", self.nvrtcAddNameExpression);
    visit("nvrtcCompileProgram", self.nvrtcCompileProgram);
    visit("nvrtcGetLoweredName", self.nvrtcGetLoweredName);
    visit("nvrtcGetNumSupportedArchs", self.nvrtcGetNumSupportedArchs);
    visit("nvrtcGetSupportedArchs", self.nvrtcGetSupportedArchs);
    visit("nvrtcGetCUBINSize", self.nvrtcGetCUBINSize);
    visit("nvrtcGetCUBIN", self.nvrtcGetCUBIN);
    visit("nvrtcGetPTXSize", self.nvrtcGetPTXSize);
    visit("nvrtcGetPTX", self.nvrtcGetPTX);
    visit("nvrtcGetProgramLogSize", self.nvrtcGetProgramLogSize);
    visit("nvrtcGetProgramLog", self.nvrtcGetProgramLog);
  }
};

// A compiled program: its image, which is code of a GPU or PTX, and the names in it of the kernels
// that were asked for.
struct Cubin {
  std::string image;
  std::vector<std::string> names;
  std::string log;  // the compiler's remarks
};

// Any thread may use it.
struct Nvrtc : NvrtcTable {
  std::string path;
  int version = 0;    // 13000 is CUDA 13.0
  bool fake = false;  // the tests' compiler, whose images only the fake driver loads

  // What is to be compiled for GPUs of `architecture`: itself, or for GPUs that are newer than the
  // compiler PTX of the newest before it ("compute_90"), which the driver compiles.
  // failed_precondition for GPUs that are older than all it knows.
  Expected<std::string> target_for(const std::string& architecture) const;

  // `kernels` are name expressions ("scale<float>"), `architecture` is such as "sm_90", or
  // "compute_90" for PTX, `files` what the source may include. With `resources` the log tells what
  // each kernel takes of a GPU (resources.hpp); the code is the same. invalid_argument with the log
  // when the compiler refuses the source.
  Expected<Cubin> compile(const std::string& source, const std::vector<std::string>& kernels,
                          const std::string& architecture,
                          std::span<const DeviceCode::File> files = {},
                          bool resources = false) const;
  // How it compiles, but for the architecture.
  static std::string_view options();
};

// For a driver of that version (0: unknown). not_found, or failed_precondition for a library that
// cannot be used.
Expected<Nvrtc> open_nvrtc(const Search& search, int driver_version);

}  // namespace troupe::cuda
