// As much of a driver as NVIDIA's cuDNN asks for while it makes plans: it loads what was compiled
// for a GPU that is only described, and runs nothing. build/fake-loader/libcuda.so.1 has the name
// by which libraries look for the driver, so that a test that has opened it has them find it.
//
// Device code is refused unless it is an image of NVIDIA's (ELF, machine 190).
#include <atomic>
#include <cstddef>
#include <cstring>

namespace {

constexpr int kSuccess = 0, kInvalidImage = 200, kNotSupported = 801;
std::atomic<std::size_t> loaded{0};

// Of a header of ELF: the machine is its tenth pair of bytes.
bool is_device_image(const void* code) {
  unsigned short machine = 0;
  std::memcpy(&machine, static_cast<const char*>(code) + 18, sizeof machine);
  return std::memcmp(code, "\177ELF", 4) == 0 && machine == 190;
}

}  // namespace

#pragma GCC visibility push(default)
extern "C" {

// How many images were loaded.
std::size_t troupe_loader_images() { return loaded.load(); }

int cuLibraryLoadData(void** library, const void* code, void*, void*, unsigned, void*, void*,
                      unsigned) {
  if (!is_device_image(code)) return kInvalidImage;
  loaded.fetch_add(1);
  *library = &loaded;
  return kSuccess;
}
int cuLibraryUnload(void*) { return kSuccess; }
int cuLibraryGetKernel(void** kernel, void*, const char*) {
  *kernel = &loaded;
  return kSuccess;
}
int cuKernelSetAttribute(int, int, void*, int) { return kSuccess; }
int cuKernelGetAttribute(int* value, int, void*, int) {
  *value = 0;
  return kSuccess;
}
int cuDriverGetVersion(int* version) {
  *version = 13000;
  return kSuccess;
}
int cuGetErrorName(int, const char** name) {
  *name = "an error of the tests' loader";
  return kSuccess;
}
int cuGetErrorString(int error, const char** text) { return cuGetErrorName(error, text); }

int cuCtxGetCurrent() { return kNotSupported; }
int cuCtxGetLimit() { return kNotSupported; }
int cuCtxPopCurrent() { return kNotSupported; }
int cuCtxPushCurrent() { return kNotSupported; }
int cuDeviceGet() { return kNotSupported; }
int cuDeviceGetCount() { return kNotSupported; }
int cuLaunchCooperativeKernel() { return kNotSupported; }
int cuLaunchKernel() { return kNotSupported; }
int cuLaunchKernelEx() { return kNotSupported; }
int cuLibraryLoadFromFile() { return kNotSupported; }
int cuLinkAddData() { return kNotSupported; }
int cuLinkComplete() { return kNotSupported; }
int cuLinkCreate() { return kNotSupported; }
int cuLinkDestroy() { return kNotSupported; }
int cuOccupancyMaxPotentialClusterSize() { return kNotSupported; }
int cuStreamGetCtx() { return kNotSupported; }

}  // extern "C"
#pragma GCC visibility pop
