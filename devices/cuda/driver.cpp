#include "devices/cuda/driver.hpp"

namespace troupe::cuda {
namespace {

using State = DriverReport::State;

std::string name_of(const DriverTable& table, Result result) {
  const char* name = nullptr;
  if (table.cuGetErrorName(result, &name) == kSuccess && name) return name;
  return "CUDA error " + std::to_string(result);
}

Code code_of(Result result) {
  switch (result) {
    case kOutOfMemory:
      return Code::resource_exhausted;
    case kNoDevice:
    case kInvalidDevice:
    case kStubLibrary:
    case kNotInitialized:
    case kDeinitialized:
    case kSystemDriverMismatch:
      return Code::unavailable;
    default:
      return Code::internal;
  }
}

// "the driver of CUDA 13.0 (/usr/lib/libcuda.so.1)"
std::string named(const Driver& driver) {
  return std::string(driver.fake ? "the fake driver" : "the driver") + " of CUDA " +
         version_text(driver.version) + " (" + driver.path + ")";
}

DriverReport& ends(DriverReport& report, State state, std::string text) {
  report.state = state;
  report.text = std::move(text);
  return report;
}

DriverReport& look_at(DriverReport& report, const Library& library) {
  Driver& d = report.driver;
  d.path = library.path();
  d.fake = library.find("troupe_fake_driver") != nullptr;
  const char* lacks = fill(static_cast<DriverTable&>(d), library);
  if (!d.cuInit || !d.cuDriverGetVersion || !d.cuGetErrorName)
    return ends(report, State::broken, "no driver: " + d.path + " lacks " + lacks);
  const Result started = d.cuInit(0);
  if (started == kStubLibrary)
    return ends(report, State::stub,
                "no driver: " + d.path + " is a stub, which programs are only linked against");
  if (const Result told = d.cuDriverGetVersion(&d.version); told != kSuccess)
    return ends(report, State::failed,
                "the driver " + d.path + " does not tell its version: " + name_of(d, told));
  const std::string least = "; CUDA " + version_text(kLeastDriver) + " is the least";
  if (d.version < kLeastDriver) return ends(report, State::old, "too old: " + named(d) + least);
  if (lacks) return ends(report, State::old, "too old: " + named(d) + " lacks " + lacks + least);
  if (started != kSuccess && started != kNoDevice)
    return ends(report, State::failed, named(d) + " does not start: " + name_of(d, started));
  if (started == kSuccess) {
    if (const Result counted = d.cuDeviceGetCount(&d.devices); counted != kSuccess)
      return ends(report, State::failed, named(d) + " counts no devices: " + name_of(d, counted));
  }
  if (d.devices == 0) return ends(report, State::no_device, "no device: " + named(d) + " has none");
  return ends(report, State::ready, named(d));
}

}  // namespace

std::string version_text(int version) {
  return std::to_string(version / 1000) + "." + std::to_string(version % 1000 / 10);
}

Status Driver::check(Result result, const char* call) const {
  if (result == kSuccess) return ok_status();
  const char* text = nullptr;
  const bool told = cuGetErrorString(result, &text) == kSuccess && text;
  return Status(code_of(result), std::string(call) + ": " + name_of(*this, result) +
                                     (told ? " (" + std::string(text) + ")" : ""));
}

const char* state_name(State state) {
  switch (state) {
    case State::missing:
      return "missing";
    case State::broken:
      return "broken";
    case State::stub:
      return "stub";
    case State::old:
      return "old";
    case State::failed:
      return "failed";
    case State::no_device:
      return "no_device";
    case State::ready:
      return "ready";
  }
  return "unknown";
}

// Stubs have no version in their name, and may stand before the driver in a path that serves to
// link programs.
DriverReport look_for_driver(const Search& search) {
  DriverReport report;
  const auto library = Library::open({"libcuda.so.1", "libcuda.so"}, search);
  if (library.ok()) return look_at(report, *library);
  const bool missing = library.status().code() == Code::not_found;
  return ends(report, missing ? State::missing : State::broken,
              "no driver: " + library.status().message());
}

Expected<Driver> open_driver(const Search& search) {
  DriverReport report = look_for_driver(search);
  if (report.state == State::ready) return std::move(report.driver);
  return failed_precondition(std::move(report.text));
}

}  // namespace troupe::cuda
