// A compiler of device code without a toolkit, for tests: build/fake-nvrtc/libnvrtc.so.13 has the
// functions of devices/cuda/nvrtc.hpp. It compiles nothing. The functions that a program defines
// must be among those that the fake driver has, compiled by g++ from the same text; its image is
// the one that stands for all of them.
#include <cstring>
#include <set>
#include <string>

#include "devices/cuda/nvrtc.hpp"
#include "tests/fake_cuda/emulated.hpp"
#include "tests/fake_cuda/fake_cuda.hpp"

using namespace troupe::cuda;

namespace troupe::cuda {

struct OpaqueProgram {
  std::string source, log;
  bool compiled = false;
};

}  // namespace troupe::cuda

namespace {

constexpr CompileResult kFine = 0, kInvalidInput = 3, kInvalidProgram = 4, kCompilation = 6;

// The names of the program's functions.
std::set<std::string> functions_of(const std::string& source) {
  constexpr std::string_view kEntry = "extern \"C\" __global__ void ";
  std::set<std::string> names;
  for (std::size_t at = source.find(kEntry); at != std::string::npos;
       at = source.find(kEntry, at + 1)) {
    const std::size_t begin = at + kEntry.size();
    names.insert(source.substr(begin, source.find('(', begin) - begin));
  }
  return names;
}

bool is_emulated(const std::string& name) {
  for (const auto& kernel : troupe::simt::emulated_kernels())
    if (name == kernel.name) return true;
  return false;
}

}  // namespace

#pragma GCC visibility push(default)
extern "C" {

CompileResult nvrtcVersion(int* major, int* minor) {
  *major = 13;
  *minor = 0;
  return kFine;
}
const char* nvrtcGetErrorString(CompileResult result) {
  return result == kCompilation ? "NVRTC_ERROR_COMPILATION" : "NVRTC_ERROR_INVALID_INPUT";
}
CompileResult nvrtcCreateProgram(ProgramHandle* program, const char* source, const char*, int,
                                 const char* const*, const char* const*) {
  *program = new OpaqueProgram{source, {}, false};
  return kFine;
}
CompileResult nvrtcDestroyProgram(ProgramHandle* program) {
  delete *program;
  *program = nullptr;
  return kFine;
}
CompileResult nvrtcAddNameExpression(ProgramHandle, const char*) { return kInvalidInput; }
CompileResult nvrtcCompileProgram(ProgramHandle program, int, const char* const*) {
  for (const std::string& name : functions_of(program->source))
    if (!is_emulated(name)) program->log += "no such function: " + name + "\n";
  program->compiled = program->log.empty();
  return program->compiled ? kFine : kCompilation;
}
CompileResult nvrtcGetLoweredName(ProgramHandle, const char*, const char**) {
  return kInvalidInput;
}
CompileResult nvrtcGetCUBINSize(ProgramHandle program, std::size_t* bytes) {
  *bytes = sizeof troupe::fake_cuda::kImage;
  return program->compiled ? kFine : kInvalidProgram;
}
CompileResult nvrtcGetCUBIN(ProgramHandle program, char* to) {
  if (!program->compiled) return kInvalidProgram;
  std::memcpy(to, troupe::fake_cuda::kImage, sizeof troupe::fake_cuda::kImage);
  return kFine;
}
CompileResult nvrtcGetProgramLogSize(ProgramHandle program, std::size_t* bytes) {
  *bytes = program->log.size() + 1;
  return kFine;
}
CompileResult nvrtcGetProgramLog(ProgramHandle program, char* to) {
  std::memcpy(to, program->log.c_str(), program->log.size() + 1);
  return kFine;
}

}  // extern "C"
#pragma GCC visibility pop
