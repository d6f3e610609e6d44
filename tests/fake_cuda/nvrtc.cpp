// A compiler of device code without a toolkit, for tests: build/fake-nvrtc/libnvrtc.so.13 has the
// functions of devices/cuda/nvrtc.hpp. It compiles nothing. The functions that a program defines
// must be among those that the fake driver has, compiled by g++ from the same text; its image is
// the one that stands for all of them. Files with words that the oldest NVRTC does not know are
// refused. As NVIDIA's of CUDA 13 it has a second library, which whoever opens it has to open, too.
// Asked what functions take of a GPU, it writes what NVIDIA's
// writes, as TROUPE_FAKE_NVRTC has it: "registers=N" (default 32), "spilled=N" (default 0), or
// "silent=1", which leaves it out.
#include <dlfcn.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <set>
#include <span>
#include <string>
#include <string_view>

#include "devices/cuda/nvrtc.hpp"
#include "tests/fake_cuda/emulated.hpp"
#include "tests/fake_cuda/fake_cuda.hpp"

using namespace troupe::cuda;

namespace troupe::cuda {

struct OpaqueProgram {
  std::string source, log;
  bool compiled = false, ptx = false;
};

}  // namespace troupe::cuda

namespace {

constexpr CompileResult kFine = 0, kInvalidInput = 3, kInvalidProgram = 4, kInvalidOption = 5,
                        kCompilation = 6, kNoBuiltins = 7;

// Those of NVRTC 13.0.
constexpr int kArchitectures[] = {75, 80, 86, 87, 88, 89, 90, 100, 103, 110, 120, 121};
bool is_known(std::string_view architecture) {
  for (const int number : kArchitectures)
    if (architecture == fmt::format("sm_{}", number) ||
        architecture == fmt::format("compute_{}", number))
      return true;
  return false;
}

// What g++ knows, and NVRTC only since CUDA 12.3; the oldest that is served is that of 12.0.
constexpr const char* kNewer[] = {"__builtin_bit_cast", "__builtin_huge_val", "__builtin_nan"};

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

// A copy under the name of the version before is of that version.
bool opened_as_12() {
  Dl_info info;
  return dladdr(reinterpret_cast<void*>(&opened_as_12), &info) != 0 && info.dli_fname &&
         std::string_view(info.dli_fname).ends_with(".so.12");
}

// Of "registers=70,spilled=8" 70 for "registers".
int setting(const char* name, int otherwise) {
  const char* all = std::getenv("TROUPE_FAKE_NVRTC");
  const char* found = all ? std::strstr(all, name) : nullptr;
  return found ? std::atoi(found + std::strlen(name) + 1) : otherwise;
}

std::string remarks_on(const std::string& name, const std::string& architecture) {
  if (setting("silent", 0) != 0) return {};
  return fmt::format(
      "ptxas info    : Compiling entry function '{0}' for '{1}'\n"
      "ptxas info    : Function properties for {0}\n"
      "ptxas         .     {3} bytes stack frame, {3} bytes spill stores, 0 bytes spill loads\n"
      "ptxas info    : Used {2} registers, used 0 barriers\n",
      name, architecture, setting("registers", 32), setting("spilled", 0));
}

}  // namespace

#pragma GCC visibility push(default)
extern "C" {

int troupe_fake_nvrtc() { return 1; }

CompileResult nvrtcVersion(int* major, int* minor) {
  *major = opened_as_12() ? 12 : 13;
  *minor = *major == 12 ? 8 : 0;
  return kFine;
}
const char* nvrtcGetErrorString(CompileResult result) {
  if (result == kNoBuiltins) return "NVRTC_ERROR_BUILTIN_OPERATION_FAILURE";
  return result == kCompilation ? "NVRTC_ERROR_COMPILATION" : "NVRTC_ERROR_INVALID_INPUT";
}
CompileResult nvrtcCreateProgram(ProgramHandle* program, const char* source, const char*, int count,
                                 const char* const* texts, const char* const* names) {
  *program = new OpaqueProgram{source, {}, false};
  for (int i = 0; i < count; ++i)
    for (const char* word : kNewer)
      if (std::strstr(texts[i], word))
        (*program)->log +=
            fmt::format("{}: error: identifier \"{}\" is undefined\n", names[i], word);
  return kFine;
}
CompileResult nvrtcDestroyProgram(ProgramHandle* program) {
  delete *program;
  *program = nullptr;
  return kFine;
}
CompileResult nvrtcAddNameExpression(ProgramHandle, const char*) { return kInvalidInput; }
CompileResult nvrtcCompileProgram(ProgramHandle program, int count, const char* const* options) {
  if (!opened_as_12() && !dlopen("libtroupe_fake_builtins.so", RTLD_NOW | RTLD_NOLOAD)) {
    program->log = "nvrtc: error: failed to open libnvrtc-builtins.so.13.0.\n";
    return kNoBuiltins;
  }
  constexpr std::string_view kArchitecture = "--gpu-architecture=";
  std::string architecture;
  for (const std::string_view option : std::span(options, std::size_t(count)))
    if (option.starts_with(kArchitecture)) architecture = option.substr(kArchitecture.size());
  if (!is_known(architecture)) {
    program->log = "nvrtc: error: invalid value for --gpu-architecture (-arch)\n";
    return kInvalidOption;
  }
  program->ptx = architecture.starts_with("compute_");
  const std::set<std::string> names = functions_of(program->source);
  for (const std::string& name : names)
    if (!is_emulated(name)) program->log += "no such function: " + name + "\n";
  program->compiled = program->log.empty();
  if (!program->compiled) return kCompilation;
  for (const std::string_view option : std::span(options, std::size_t(count))) {
    if (option != "--ptxas-options=-v") continue;
    for (const std::string& name : names) program->log += remarks_on(name, architecture);
  }
  return kFine;
}
CompileResult nvrtcGetLoweredName(ProgramHandle, const char*, const char**) {
  return kInvalidInput;
}
CompileResult nvrtcGetCUBINSize(ProgramHandle program, std::size_t* bytes) {
  *bytes = program->ptx ? 0 : sizeof troupe::fake_cuda::kImage;
  return program->compiled ? kFine : kInvalidProgram;
}
CompileResult nvrtcGetCUBIN(ProgramHandle program, char* to) {
  if (!program->compiled || program->ptx) return kInvalidProgram;
  std::memcpy(to, troupe::fake_cuda::kImage, sizeof troupe::fake_cuda::kImage);
  return kFine;
}
CompileResult nvrtcGetPTXSize(ProgramHandle program, std::size_t* bytes) {
  *bytes = sizeof troupe::fake_cuda::kImage;
  return program->compiled ? kFine : kInvalidProgram;
}
CompileResult nvrtcGetPTX(ProgramHandle program, char* to) {
  if (!program->compiled) return kInvalidProgram;
  std::memcpy(to, troupe::fake_cuda::kImage, sizeof troupe::fake_cuda::kImage);
  return kFine;
}
CompileResult nvrtcGetNumSupportedArchs(int* count) {
  *count = int(std::size(kArchitectures));
  return kFine;
}
CompileResult nvrtcGetSupportedArchs(int* architectures) {
  std::copy(std::begin(kArchitectures), std::end(kArchitectures), architectures);
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
