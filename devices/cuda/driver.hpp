// Driver: the CUDA driver as a table of functions, opened at run time.
#pragma once

#include <string>
#include <type_traits>

#include "core/status.hpp"
#include "devices/cuda/driver_types.hpp"
#include "devices/cuda/library.hpp"

namespace troupe::cuda {

// The functions of libcuda.so.1 under its own names. Where NVIDIA has several versions of one, the
// name ends in the version that <cuda.h> means since CUDA 12.
struct DriverTable {
  Result (*cuInit)(unsigned flags) = nullptr;
  Result (*cuDriverGetVersion)(int* version) = nullptr;
  Result (*cuGetErrorName)(Result, const char** name) = nullptr;
  Result (*cuGetErrorString)(Result, const char** text) = nullptr;

  Result (*cuDeviceGetCount)(int* count) = nullptr;
  Result (*cuDeviceGet)(DeviceId*, int ordinal) = nullptr;
  Result (*cuDeviceGetName)(char* name, int bytes, DeviceId) = nullptr;
  Result (*cuDeviceTotalMem_v2)(std::size_t* bytes, DeviceId) = nullptr;
  Result (*cuDeviceGetAttribute)(int* value, int attribute, DeviceId) = nullptr;
  Result (*cuDevicePrimaryCtxRetain)(ContextHandle*, DeviceId) = nullptr;
  Result (*cuDevicePrimaryCtxRelease_v2)(DeviceId) = nullptr;
  Result (*cuCtxSetCurrent)(ContextHandle) = nullptr;

  Result (*cuMemGetInfo_v2)(std::size_t* free, std::size_t* total) = nullptr;
  Result (*cuMemAlloc_v2)(DeviceAddress*, std::size_t bytes) = nullptr;
  Result (*cuMemFree_v2)(DeviceAddress) = nullptr;
  Result (*cuMemHostAlloc)(void**, std::size_t bytes, unsigned flags) = nullptr;
  Result (*cuMemFreeHost)(void*) = nullptr;
  Result (*cuMemcpyHtoDAsync_v2)(DeviceAddress to, const void* from, std::size_t bytes,
                                 StreamHandle) = nullptr;
  Result (*cuMemcpyDtoHAsync_v2)(void* to, DeviceAddress from, std::size_t bytes,
                                 StreamHandle) = nullptr;
  Result (*cuMemcpyDtoDAsync_v2)(DeviceAddress to, DeviceAddress from, std::size_t bytes,
                                 StreamHandle) = nullptr;
  Result (*cuMemsetD8Async)(DeviceAddress, unsigned char value, std::size_t bytes,
                            StreamHandle) = nullptr;

  Result (*cuStreamCreateWithPriority)(StreamHandle*, unsigned flags, int priority) = nullptr;
  Result (*cuStreamDestroy_v2)(StreamHandle) = nullptr;
  Result (*cuStreamSynchronize)(StreamHandle) = nullptr;
  Result (*cuStreamWaitEvent)(StreamHandle, EventHandle, unsigned flags) = nullptr;
  Result (*cuEventCreate)(EventHandle*, unsigned flags) = nullptr;
  Result (*cuEventDestroy_v2)(EventHandle) = nullptr;
  Result (*cuEventRecord)(EventHandle, StreamHandle) = nullptr;
  Result (*cuEventQuery)(EventHandle) = nullptr;
  Result (*cuEventSynchronize)(EventHandle) = nullptr;
  // The name of all versions since CUDA 2; newer headers call a later one.
  Result (*cuEventElapsedTime)(float* milliseconds, EventHandle from, EventHandle to) = nullptr;

  Result (*cuModuleLoadData)(ModuleHandle*, const void* image) = nullptr;
  Result (*cuModuleUnload)(ModuleHandle) = nullptr;
  Result (*cuModuleGetFunction)(FunctionHandle*, ModuleHandle, const char* name) = nullptr;
  Result (*cuLaunchKernel)(FunctionHandle, unsigned grid_x, unsigned grid_y, unsigned grid_z,
                           unsigned block_x, unsigned block_y, unsigned block_z,
                           unsigned shared_bytes, StreamHandle, void** arguments,
                           void** extra) = nullptr;

  template <class Self, class Visit>
  static void each(Self& self, Visit&& visit) {
    visit("cuInit", self.cuInit);
    visit("cuDriverGetVersion", self.cuDriverGetVersion);
    visit("cuGetErrorName", self.cuGetErrorName);
    visit("cuGetErrorString", self.cuGetErrorString);
    visit("cuDeviceGetCount", self.cuDeviceGetCount);
    visit("cuDeviceGet", self.cuDeviceGet);
    visit("cuDeviceGetName", self.cuDeviceGetName);
    visit("cuDeviceTotalMem_v2", self.cuDeviceTotalMem_v2);
    visit("cuDeviceGetAttribute", self.cuDeviceGetAttribute);
    visit("cuDevicePrimaryCtxRetain", self.cuDevicePrimaryCtxRetain);
    visit("cuDevicePrimaryCtxRelease_v2", self.cuDevicePrimaryCtxRelease_v2);
    visit("cuCtxSetCurrent", self.cuCtxSetCurrent);
    visit("cuMemGetInfo_v2", self.cuMemGetInfo_v2);
    visit("cuMemAlloc_v2", self.cuMemAlloc_v2);
    visit("cuMemFree_v2", self.cuMemFree_v2);
    visit("cuMemHostAlloc", self.cuMemHostAlloc);
    visit("cuMemFreeHost", self.cuMemFreeHost);
    visit("cuMemcpyHtoDAsync_v2", self.cuMemcpyHtoDAsync_v2);
    visit("cuMemcpyDtoHAsync_v2", self.cuMemcpyDtoHAsync_v2);
    visit("cuMemcpyDtoDAsync_v2", self.cuMemcpyDtoDAsync_v2);
    visit("cuMemsetD8Async", self.cuMemsetD8Async);
    visit("cuStreamCreateWithPriority", self.cuStreamCreateWithPriority);
    visit("cuStreamDestroy_v2", self.cuStreamDestroy_v2);
    visit("cuStreamSynchronize", self.cuStreamSynchronize);
    visit("cuStreamWaitEvent", self.cuStreamWaitEvent);
    visit("cuEventCreate", self.cuEventCreate);
    visit("cuEventDestroy_v2", self.cuEventDestroy_v2);
    visit("cuEventRecord", self.cuEventRecord);
    visit("cuEventQuery", self.cuEventQuery);
    visit("cuEventSynchronize", self.cuEventSynchronize);
    visit("cuEventElapsedTime", self.cuEventElapsedTime);
    visit("cuModuleLoadData", self.cuModuleLoadData);
    visit("cuModuleUnload", self.cuModuleUnload);
    visit("cuModuleGetFunction", self.cuModuleGetFunction);
    visit("cuLaunchKernel", self.cuLaunchKernel);
  }
};

// An opened driver that found a device. Any thread may call its functions.
struct Driver : DriverTable {
  std::string path;   // of the library
  int version = 0;    // 13000 is CUDA 13.0
  bool fake = false;  // the tests' driver, on host threads
  int devices = 0;

  // Ok for kSuccess; else an error with CUDA's name for it:
  // "cuMemAlloc: CUDA_ERROR_OUT_OF_MEMORY (out of memory)".
  Status check(Result result, const char* call) const;
};

// The least version that has all that is used.
inline constexpr int kLeastDriver = 12000;

// "13.0" of 13000.
std::string version_text(int version);

// What is known of the driver of this machine; `text` says it in one line.
struct DriverReport {
  enum class State { missing, broken, stub, old, failed, no_device, ready };
  State state = State::missing;
  std::string text;
  Driver driver;  // filled as far as it came
};
const char* state_name(DriverReport::State state);
DriverReport look_for_driver(const Search& search);

// The driver, or failed_precondition with the report's text.
Expected<Driver> open_driver(const Search& search);

}  // namespace troupe::cuda
