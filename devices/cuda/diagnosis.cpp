#include "devices/cuda/diagnosis.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "core/byte_count.hpp"
#include "devices/cuda/attentions.hpp"
#include "devices/cuda/convolutions.hpp"
#include "devices/cuda/nvrtc.hpp"
#include "devices/cuda/products.hpp"

namespace troupe::cuda {
namespace {

// A library with a function that tells its version as 10000 * major + 100 * minor + patch.
struct Versioned {
  const char* part;
  const char* version;  // its function
  bool of_cuda;         // its major version is that of CUDA
};
constexpr Versioned kCublasLt = {"cublasLt", "cublasLtGetVersion", true};
constexpr Versioned kCudnn = {"cudnn", "cudnnGetVersion", false};

// NVIDIA names the packages of CUDA 13 in two ways.
std::string wheel_of(const std::string& part, int driver_version) {
  const bool old = driver_version != 0 && driver_version < 13000;
  if (part == "nvrtc") return old ? "nvidia-cuda-nvrtc-cu12" : "nvidia-cuda-nvrtc";
  if (part == "cublasLt") return old ? "nvidia-cublas-cu12" : "nvidia-cublas";
  return old ? "nvidia-cudnn-cu12" : "nvidia-cudnn-cu13";
}

Finding absent(const std::string& part, const Status& why, int driver_version) {
  const bool missing = why.code() == Code::not_found;
  Finding finding{part, missing ? "missing" : "broken", why.message(), {}};
  if (missing) {
    finding.wheel = wheel_of(part, driver_version);
    finding.text = "missing: " + finding.text + "; the wheel " + finding.wheel + " has it";
  }
  return finding;
}

// Within a major version older drivers serve newer libraries.
bool too_new(int cuda_major, int driver_version) {
  return driver_version != 0 && cuda_major > driver_version / 1000;
}

Finding library_finding(const Versioned& of, const std::vector<std::string>& files,
                        const Search& search, int driver_version) {
  const auto library = Library::open(files, search);
  if (!library.ok()) return absent(of.part, library.status(), driver_version);
  auto* version = reinterpret_cast<std::size_t (*)()>(library->find(of.version));
  if (!version)
    return {of.part, "broken", fmt::format("{} lacks {}", library->path(), of.version), {}};
  const std::size_t v = version();
  const std::string text =
      fmt::format("{}.{}.{} ({})", v / 10000, v / 100 % 100, v % 100, library->path());
  if (!of.of_cuda || !too_new(int(v / 10000), driver_version)) return {of.part, "ready", text, {}};
  const std::string wheel = wheel_of(of.part, driver_version);
  return {of.part, "too_new",
          fmt::format("{} is too new for the driver of CUDA {}; the wheel {} is for it", text,
                      version_text(driver_version), wheel),
          wheel};
}

Finding matmul_finding(const Search& search, const Driver& driver) {
  const auto choice = choose_products(search, driver);
  if (!choice.ok()) return {"matmul", "failed", choice.status().message(), {}};
  return {"matmul", "ready", "by " + choice->text, {}};
}

Finding conv_finding(const Search& search, const Driver& driver) {
  const auto choice = choose_convolutions(search, driver);
  if (!choice.ok()) return {"conv", "failed", choice.status().message(), {}};
  return {"conv", "ready", "by " + choice->text, {}};
}

Finding attention_finding(const Search& search, const Driver& driver) {
  const auto choice = choose_attentions(search, driver);
  if (!choice.ok()) return {"attention", "failed", choice.status().message(), {}};
  return {"attention", "ready", "by " + choice->text, {}};
}

Finding gpu_finding(const Driver& driver, int ordinal) {
  const std::string part = fmt::format("gpu:{}", ordinal);
  DeviceId device = 0;
  Status found = driver.check(driver.cuDeviceGet(&device, ordinal), "cuDeviceGet");
  if (!found.ok()) return {part, "failed", found.message(), {}};
  const auto info = gpu_info(driver, device);
  if (!info.ok()) return {part, "failed", info.status().message(), {}};
  return {part,
          "ready",
          fmt::format("{}, {}, {}", info->name, byte_count_text(info->memory), info->architecture),
          {}};
}

}  // namespace

Finding nvrtc_finding(const Search& search, int driver_version) {
  const auto nvrtc = open_nvrtc(search, driver_version);
  if (!nvrtc.ok()) return absent("nvrtc", nvrtc.status(), driver_version);
  const std::string text = version_text(nvrtc->version) + " (" + nvrtc->path + ")";
  if (too_new(nvrtc->version / 1000, driver_version))
    return {"nvrtc", "too_new",
            fmt::format("{} makes code that the driver of CUDA {} does not load; the wheel {} "
                        "makes such",
                        text, version_text(driver_version), wheel_of("nvrtc", driver_version)),
            wheel_of("nvrtc", driver_version)};
  return {"nvrtc", "ready", text, {}};
}

Finding cublaslt_finding(const Search& search, int driver_version) {
  return library_finding(kCublasLt, names_for_driver("libcublasLt.so", driver_version), search,
                         driver_version);
}

Finding cudnn_finding(const Search& search, int driver_version) {
  return library_finding(kCudnn, {"libcudnn.so.9"}, search, driver_version);
}

bool Diagnosis::ready() const {
  return std::all_of(findings.begin(), findings.end(),
                     [](const Finding& f) { return f.state == "ready"; });
}

Expected<GpuInfo> gpu_info(const Driver& driver, DeviceId device) {
  GpuInfo info;
  std::array<char, 256> name{};
  TROUPE_TRY(driver.check(driver.cuDeviceGetName(name.data(), int(name.size()) - 1, device),
                          "cuDeviceGetName"));
  info.name = name.data();
  TROUPE_TRY(driver.check(driver.cuDeviceTotalMem_v2(&info.memory, device), "cuDeviceTotalMem"));
  int major = 0, minor = 0;
  TROUPE_TRY(driver.check(driver.cuDeviceGetAttribute(&major, kComputeMajor, device),
                          "cuDeviceGetAttribute"));
  TROUPE_TRY(driver.check(driver.cuDeviceGetAttribute(&minor, kComputeMinor, device),
                          "cuDeviceGetAttribute"));
  info.architecture = fmt::format("sm_{}{}", major, minor);
  return info;
}

Diagnosis diagnose(const Search& search) {
  const DriverReport report = look_for_driver(search);
  Diagnosis diagnosis;
  diagnosis.fake = report.driver.fake;
  diagnosis.findings.push_back({"driver", state_name(report.state), report.text, {}});
  if (report.state == DriverReport::State::ready)
    for (int i = 0; i < report.driver.devices; ++i)
      diagnosis.findings.push_back(gpu_finding(report.driver, i));
  const int version = report.driver.version;
  diagnosis.findings.push_back(nvrtc_finding(search, version));
  diagnosis.findings.push_back(cublaslt_finding(search, version));
  if (report.state == DriverReport::State::ready)
    diagnosis.findings.push_back(matmul_finding(search, report.driver));
  diagnosis.findings.push_back(cudnn_finding(search, version));
  if (report.state == DriverReport::State::ready) {
    diagnosis.findings.push_back(conv_finding(search, report.driver));
    diagnosis.findings.push_back(attention_finding(search, report.driver));
  }
  return diagnosis;
}

}  // namespace troupe::cuda
