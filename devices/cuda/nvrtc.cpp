#include "devices/cuda/nvrtc.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <memory>

namespace troupe::cuda {
namespace {

// Without contraction + - * / and sqrt have the CPU's bits. Formulas say nothing of devices.
constexpr std::array kOptions = {"--std=c++20", "--fmad=false",
                                 "--device-as-default-execution-space"};

constexpr std::string_view kCodeOf = "sm_", kPtxOf = "compute_";

Status failed(const Nvrtc& nvrtc, CompileResult result, const char* call) {
  if (result == 0) return ok_status();
  return internal_error(std::string(call) + ": " + nvrtc.nvrtcGetErrorString(result));
}

std::string log_of(const Nvrtc& nvrtc, ProgramHandle program) {
  std::size_t bytes = 0;
  if (nvrtc.nvrtcGetProgramLogSize(program, &bytes) != 0 || bytes < 2) return "no log";
  std::string log(bytes, '\0');
  if (nvrtc.nvrtcGetProgramLog(program, log.data()) != 0) return "no log";
  log.resize(bytes - 1);  // the log ends with a zero
  return log;
}

}  // namespace

Expected<Cubin> Nvrtc::compile(const std::string& source, const std::vector<std::string>& kernels,
                               const std::string& architecture,
                               std::span<const DeviceCode::File> files, bool resources) const {
  std::vector<const char*> texts, file_names;
  for (const DeviceCode::File& file : files) {
    texts.push_back(file.text);
    file_names.push_back(file.name);
  }
  ProgramHandle program = nullptr;
  TROUPE_TRY(failed(*this,
                    nvrtcCreateProgram(&program, source.c_str(), "kernels.cu", int(files.size()),
                                       texts.data(), file_names.data()),
                    "nvrtcCreateProgram"));
  const auto destroy = [this](ProgramHandle* p) { nvrtcDestroyProgram(p); };
  const std::unique_ptr<ProgramHandle, decltype(destroy)> owner(&program, destroy);
  for (const std::string& kernel : kernels)
    TROUPE_TRY(
        failed(*this, nvrtcAddNameExpression(program, kernel.c_str()), "nvrtcAddNameExpression"));
  const std::string arch = "--gpu-architecture=" + architecture;
  std::vector<const char*> options = {arch.c_str()};
  options.insert(options.end(), kOptions.begin(), kOptions.end());
  if (resources) options.push_back("--ptxas-options=-v");
  if (const CompileResult compiled =
          nvrtcCompileProgram(program, int(options.size()), options.data());
      compiled != 0)
    return invalid_argument("nvrtcCompileProgram: " + std::string(nvrtcGetErrorString(compiled)) +
                            ": " + log_of(*this, program));
  Cubin cubin;
  cubin.log = log_of(*this, program);
  for (const std::string& kernel : kernels) {
    const char* name = nullptr;
    TROUPE_TRY(
        failed(*this, nvrtcGetLoweredName(program, kernel.c_str(), &name), "nvrtcGetLoweredName"));
    cubin.names.emplace_back(name);
  }
  std::size_t bytes = 0;
  if (architecture.starts_with(kPtxOf)) {  // a text that ends with a zero
    TROUPE_TRY(failed(*this, nvrtcGetPTXSize(program, &bytes), "nvrtcGetPTXSize"));
    cubin.image.resize(bytes);
    TROUPE_TRY(failed(*this, nvrtcGetPTX(program, cubin.image.data()), "nvrtcGetPTX"));
    return cubin;
  }
  TROUPE_TRY(failed(*this, nvrtcGetCUBINSize(program, &bytes), "nvrtcGetCUBINSize"));
  cubin.image.resize(bytes);
  TROUPE_TRY(failed(*this, nvrtcGetCUBIN(program, cubin.image.data()), "nvrtcGetCUBIN"));
  return cubin;
}

// Code of another GPU of the same generation might do, too; where is not said for all of them.
Expected<std::string> Nvrtc::target_for(const std::string& architecture) const {
  int wanted = 0, count = 0;
  const std::string_view number = std::string_view(architecture).substr(kCodeOf.size());
  const char* const end = number.data() + number.size();
  if (std::from_chars(number.data(), end, wanted).ptr != end) return architecture;
  TROUPE_TRY(failed(*this, nvrtcGetNumSupportedArchs(&count), "nvrtcGetNumSupportedArchs"));
  std::vector<int> known(std::size_t(std::max(count, 0)));
  TROUPE_TRY(failed(*this, nvrtcGetSupportedArchs(known.data()), "nvrtcGetSupportedArchs"));
  int best = 0;
  for (const int one : known)
    if (one <= wanted) best = std::max(best, one);
  if (best == wanted) return architecture;
  if (best != 0) return fmt::format("{}{}", kPtxOf, best);
  return failed_precondition(fmt::format(
      "NVRTC {}.{} ({}) makes no code for GPUs as old as {}; one of an earlier CUDA may",
      version / 1000, version % 1000 / 10, path, architecture));
}

std::string_view Nvrtc::options() {
  static const std::string all = fmt::format("{}", fmt::join(kOptions, " "));
  return all;
}

Expected<Nvrtc> open_nvrtc(const Search& search, int driver_version) {
  TROUPE_TRY(const Library library,
             Library::open(names_for_driver("libnvrtc.so", driver_version), search));
  Nvrtc nvrtc;
  nvrtc.path = library.path();
  nvrtc.fake = library.find("troupe_fake_nvrtc") != nullptr;
  if (const char* lacks = fill(static_cast<NvrtcTable&>(nvrtc), library))
    return failed_precondition(library.path() + " lacks " + lacks);
  int major = 0, minor = 0;
  TROUPE_TRY(failed(nvrtc, nvrtc.nvrtcVersion(&major, &minor), "nvrtcVersion"));
  nvrtc.version = major * 1000 + minor * 10;
  open_beside(library, fmt::format("libnvrtc-builtins.so.{}.{}", major, minor));
  return nvrtc;
}

}  // namespace troupe::cuda
