// The functions that the fake driver exports.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <string_view>
#include <thread>

#include "devices/cuda/driver.hpp"
#include "tests/fake_cuda/emulated.hpp"
#include "tests/fake_cuda/machine.hpp"

using namespace troupe::cuda;
using namespace troupe::fake_cuda;

namespace troupe::cuda {

struct OpaqueContext {
  explicit OpaqueContext(const Options& options) : gpu(options) {}
  Gpu gpu;
  int holders = 1;
};
struct OpaqueFunction {
  Run run;
  std::vector<std::size_t> sizes;
  const troupe::simt::EmulatedKernel* emulated = nullptr;  // in place of `run`
};
struct OpaqueModule {};

}  // namespace troupe::cuda

namespace {

// Of the whole driver.
struct Driving {
  Driving() {
    for (const auto& kernel : troupe::simt::emulated_kernels())
      kernels[kernel.name] = {nullptr, {kernel.args_bytes}, &kernel};
  }
  std::mutex mutex;
  std::map<DeviceId, OpaqueContext*> contexts;
  std::map<std::string, OpaqueFunction, std::less<>> kernels;
  std::map<char*, std::size_t> pinned;
  std::size_t pageable_copies = 0, modules = 0;
  std::atomic<std::size_t> timed{0}, most_queued{0}, most_blocks{0};
};

Driving& driving() {
  static Driving* one = new Driving;  // threads may outlive static objects
  return *one;
}

thread_local ContextHandle current = nullptr;

// Calls `body(gpu)` with the mutex of the current context's GPU, unless it has failed.
template <class Body>
Result on_gpu(Body&& body) {
  if (!current) return kInvalidContext;
  Gpu& gpu = current->gpu;
  std::unique_lock lock(gpu.mutex);
  if (gpu.sticky != kSuccess) return gpu.sticky;
  return body(gpu, lock);
}

bool is_pinned(const void* data, std::size_t bytes) {
  Driving& d = driving();
  std::lock_guard lock(d.mutex);
  const auto* at = static_cast<const char*>(data);
  auto block = d.pinned.upper_bound(const_cast<char*>(at));
  if (block == d.pinned.begin()) return false;
  --block;
  return at + bytes <= block->first + block->second;
}

void count_pageable() {
  std::lock_guard lock(driving().mutex);
  ++driving().pageable_copies;
}

// The legacy stream is nobody's.
Result issue(Gpu& gpu, StreamHandle stream, std::function<Result(Gpu&)> work) {
  if (gpu.streams.count(stream) == 0) return kInvalidHandle;
  const std::uint64_t number = ++stream->issued;
  if (gpu.options.check) {
    join(stream->known, gpu.host);
    stream->known[stream] = number;
  }
  stream->items.push_back({std::move(work), stream, number, stream->known});
  std::atomic<std::size_t>& most = driving().most_queued;
  most.store(std::max(most.load(), stream->items.size() + (stream->busy ? 1 : 0)));
  stream->more.notify_one();
  return kSuccess;
}

// That the work which runs touches this memory.
void note(Gpu& gpu, DeviceAddress address, std::size_t bytes, bool write, const char* what) {
  if (!gpu.options.check) return;
  std::lock_guard lock(gpu.mutex);
  gpu.note(*running(), address, bytes, write, what);
}

// What TROUPE_FAKE_CUDA says is slow.
void take_longer(const Gpu& gpu, std::string_view name) {
  if (const std::uint64_t us = gpu.options.slow_us_of(name); us != 0)
    std::this_thread::sleep_for(std::chrono::microseconds(us));
}

// Memory of another GPU, which this one cannot reach.
bool of_another(const Gpu& gpu, DeviceAddress address) {
  if (!Memory::of_any(address) || gpu.memory.inside(address)) return false;
  report("an address of another GPU is given to this one");
  return true;
}

struct Error {
  Result result;
  const char *name, *text;
};
constexpr Error kErrors[] = {
    {kSuccess, "CUDA_SUCCESS", "no error"},
    {kInvalidValue, "CUDA_ERROR_INVALID_VALUE", "invalid argument"},
    {kOutOfMemory, "CUDA_ERROR_OUT_OF_MEMORY", "out of memory"},
    {kStubLibrary, "CUDA_ERROR_STUB_LIBRARY", "CUDA driver is a stub library"},
    {kNoDevice, "CUDA_ERROR_NO_DEVICE", "no CUDA-capable device is detected"},
    {kInvalidDevice, "CUDA_ERROR_INVALID_DEVICE", "invalid device ordinal"},
    {kInvalidImage, "CUDA_ERROR_INVALID_IMAGE", "device kernel image is invalid"},
    {kInvalidContext, "CUDA_ERROR_INVALID_CONTEXT", "invalid device context"},
    {kInvalidHandle, "CUDA_ERROR_INVALID_HANDLE", "invalid resource handle"},
    {kNotFound, "CUDA_ERROR_NOT_FOUND", "named symbol not found"},
    {kNotReady, "CUDA_ERROR_NOT_READY", "device not ready"},
    {kIllegalAddress, "CUDA_ERROR_ILLEGAL_ADDRESS", "an illegal memory access was encountered"},
    {kLaunchFailed, "CUDA_ERROR_LAUNCH_FAILED", "unspecified launch failure"},
};

const Error* error_of(Result result) {
  for (const Error& error : kErrors)
    if (error.result == result) return &error;
  return nullptr;
}

// A kernel's arguments at the time of the launch.
class Arguments {
 public:
  Arguments(const std::vector<std::size_t>& sizes, void** values) {
    for (std::size_t i = 0; i < sizes.size(); ++i) {
      values_.emplace_back((sizes[i] + 7) / 8);
      std::memcpy(values_.back().data(), values[i], sizes[i]);
    }
  }
  // Device addresses become such that the fake can touch. False: one is of no live block, or of
  // another GPU. Nobody says what a kernel does there; it is taken to read where each points to.
  bool translate(Gpu& gpu, bool reads) {
    for (auto& value : values_)
      for (std::uint64_t& word : value) {
        if (!gpu.memory.inside(word)) {
          if (of_another(gpu, word)) return false;
          continue;
        }
        char* view = gpu.memory.view(word, 1);
        if (!view) return false;
        if (reads) gpu.note(*running(), word, 1, false, "a kernel");
        word = reinterpret_cast<std::uint64_t>(view);
      }
    return true;
  }
  std::vector<const void*> pointers() const {
    std::vector<const void*> out;
    for (const auto& value : values_) out.push_back(value.data());
    return out;
  }

 private:
  std::vector<std::vector<std::uint64_t>> values_;
};

}  // namespace

#pragma GCC visibility push(default)
extern "C" {

int troupe_fake_driver() { return 1; }

void troupe_fake_register(const char* name, Run run, const std::size_t* sizes, int count) {
  std::lock_guard lock(driving().mutex);
  driving().kernels[name] = {run, {sizes, sizes + count}};
}

void troupe_fake_touch(const void* data, std::size_t bytes, int write) {
  Gpu& gpu = running()->stream->gpu;
  std::lock_guard lock(gpu.mutex);
  gpu.note(*running(), gpu.memory.address_of(static_cast<const char*>(data)), bytes, write != 0,
           "a kernel");
}

const char* troupe_fake_reports() {
  static thread_local std::string text;
  text = take_reports();
  return text.c_str();
}

std::size_t troupe_fake_count(const char* what) {
  Driving& d = driving();
  std::lock_guard lock(d.mutex);
  const std::string_view key = what;
  if (key == "pageable_copies") return d.pageable_copies;
  if (key == "modules") return d.modules;
  if (key == "timed") return d.timed;
  if (key == "most_queued") return d.most_queued.exchange(0);
  if (key == "most_blocks") return d.most_blocks.exchange(0);
  if (key == "pinned") return d.pinned.size();
  if (key == "contexts") return d.contexts.size();
  std::size_t count = 0;
  for (auto& [id, context] : d.contexts) {
    Gpu& gpu = context->gpu;
    std::lock_guard of_gpu(gpu.mutex);
    if (key == "streams")
      count += gpu.streams.size();
    else if (key == "events")
      count += gpu.events.size();
    else if (key == "blocks")
      count += gpu.memory.blocks();
    else
      std::abort();
  }
  return count;
}

Result cuInit(unsigned) {
  const Options options = Options::from_environment();
  if (options.stub) return kStubLibrary;
  return options.devices == 0 ? kNoDevice : kSuccess;
}
Result cuDriverGetVersion(int* version) {
  *version = Options::from_environment().version;
  return kSuccess;
}
Result cuGetErrorName(Result result, const char** name) {
  const Error* error = error_of(result);
  *name = error ? error->name : nullptr;
  return error ? kSuccess : kInvalidValue;
}
Result cuGetErrorString(Result result, const char** text) {
  const Error* error = error_of(result);
  *text = error ? error->text : nullptr;
  return error ? kSuccess : kInvalidValue;
}

Result cuDeviceGetCount(int* count) {
  *count = Options::from_environment().devices;
  return kSuccess;
}
Result cuDeviceGet(DeviceId* device, int ordinal) {
  if (ordinal < 0 || ordinal >= Options::from_environment().devices) return kInvalidDevice;
  *device = ordinal;
  return kSuccess;
}
Result cuDeviceGetName(char* name, int bytes, DeviceId) {
  std::strncpy(name, "Fake GPU", std::size_t(bytes));
  return kSuccess;
}
Result cuDeviceTotalMem_v2(std::size_t* bytes, DeviceId) {
  *bytes = Options::from_environment().memory;
  return kSuccess;
}
Result cuDeviceGetAttribute(int* value, int attribute, DeviceId) {
  switch (attribute) {
    case kMultiprocessors:
      *value = 2;
      return kSuccess;
    case kComputeMajor:
      *value = Options::from_environment().architecture / 10;
      return kSuccess;
    case kComputeMinor:
      *value = Options::from_environment().architecture % 10;
      return kSuccess;
    default:
      return kInvalidValue;
  }
}

Result cuDevicePrimaryCtxRetain(ContextHandle* context, DeviceId device) {
  Driving& d = driving();
  std::lock_guard lock(d.mutex);
  OpaqueContext*& one = d.contexts[device];
  if (one)
    ++one->holders;
  else
    one = new OpaqueContext(Options::from_environment());
  *context = one;
  return kSuccess;
}
// The next to retain it gets a fresh one. (A real process has seen its last context after a sticky
// error; tests want more of them.)
Result cuDevicePrimaryCtxRelease_v2(DeviceId device) {
  Driving& d = driving();
  OpaqueContext* last = nullptr;
  {
    std::lock_guard lock(d.mutex);
    const auto found = d.contexts.find(device);
    if (found == d.contexts.end()) return kInvalidContext;
    if (--found->second->holders > 0) return kSuccess;
    last = found->second;
    d.contexts.erase(found);
  }
  if (current == last) current = nullptr;
  delete last;
  return kSuccess;
}
Result cuCtxSetCurrent(ContextHandle context) {
  current = context;
  return kSuccess;
}

Result cuMemGetInfo_v2(std::size_t* free, std::size_t* total) {
  return on_gpu([&](Gpu& gpu, auto&) {
    *free = gpu.memory.free_bytes();
    *total = gpu.options.memory;
    return kSuccess;
  });
}
Result cuMemAlloc_v2(DeviceAddress* address, std::size_t bytes) {
  return on_gpu([&](Gpu& gpu, auto&) {
    const std::uint64_t number = ++gpu.allocations;
    const bool fault =
        number == gpu.options.out_of_memory_at || number >= gpu.options.out_of_memory_from;
    if (fault && gpu.options.happens()) return kOutOfMemory;
    *address = gpu.memory.allocate(bytes);
    return *address != 0 ? kSuccess : kOutOfMemory;
  });
}
// Waits for all work, as NVIDIA's does.
Result cuMemFree_v2(DeviceAddress address) {
  return on_gpu([&](Gpu& gpu, std::unique_lock<std::mutex>& lock) {
    gpu.changed.wait(lock, [&] { return gpu.idle(); });
    for (const StreamHandle stream : gpu.streams) join(gpu.host, stream->known);
    gpu.forget(address);
    return gpu.memory.free(address) ? kSuccess : kInvalidValue;
  });
}
Result cuMemHostAlloc(void** data, std::size_t bytes, unsigned) {
  const Result result = on_gpu([&](Gpu& gpu, auto&) {
    if (gpu.options.no_pinned) return kOutOfMemory;
    *data = std::aligned_alloc(4096, (bytes + 4095) / 4096 * 4096);
    return *data ? kSuccess : kOutOfMemory;
  });
  if (result == kSuccess) {
    std::lock_guard lock(driving().mutex);
    driving().pinned[static_cast<char*>(*data)] = bytes;
  }
  return result;
}
Result cuMemFreeHost(void* data) {
  {
    std::lock_guard lock(driving().mutex);
    if (driving().pinned.erase(static_cast<char*>(data)) == 0) return kInvalidValue;
  }
  std::free(data);
  return kSuccess;
}

// Memory that is not pinned makes the copy wait, as it does on a GPU.
Result cuMemcpyHtoDAsync_v2(DeviceAddress to, const void* from, std::size_t bytes,
                            StreamHandle stream) {
  const bool pinned = is_pinned(from, bytes);
  if (!pinned) count_pageable();
  return on_gpu([&](Gpu& gpu, auto&) {
    char* view = gpu.memory.view(to, bytes);
    if (!view) {
      of_another(gpu, to);
      return kInvalidValue;
    }
    if (pinned)
      return issue(gpu, stream, [=](Gpu& g) {
        take_longer(g, "upload");
        note(g, to, bytes, true, "cuMemcpyHtoDAsync");
        std::memcpy(view, from, bytes);
        return kSuccess;
      });
    const auto* first = static_cast<const char*>(from);
    return issue(gpu, stream, [=, copied = std::vector<char>(first, first + bytes)](Gpu& g) {
      take_longer(g, "upload");
      note(g, to, bytes, true, "cuMemcpyHtoDAsync");
      std::memcpy(view, copied.data(), copied.size());
      return kSuccess;
    });
  });
}
Result cuMemcpyDtoHAsync_v2(void* to, DeviceAddress from, std::size_t bytes, StreamHandle stream) {
  const bool pinned = is_pinned(to, bytes);
  if (!pinned) count_pageable();
  return on_gpu([&](Gpu& gpu, std::unique_lock<std::mutex>& lock) {
    char* view = gpu.memory.view(from, bytes);
    if (!view) {
      of_another(gpu, from);
      return kInvalidValue;
    }
    const Result result = issue(gpu, stream, [=](Gpu& g) {
      take_longer(g, "download");
      note(g, from, bytes, false, "cuMemcpyDtoHAsync");
      std::memcpy(to, view, bytes);
      return kSuccess;
    });
    if (!pinned && result == kSuccess) {
      gpu.changed.wait(lock, [&] { return stream->items.empty() && !stream->busy; });
      join(gpu.host, stream->known);
    }
    return result != kSuccess ? result : gpu.sticky;
  });
}
Result cuMemcpyDtoDAsync_v2(DeviceAddress to, DeviceAddress from, std::size_t bytes,
                            StreamHandle stream) {
  return on_gpu([&](Gpu& gpu, auto&) {
    char* target = gpu.memory.view(to, bytes);
    const char* source = gpu.memory.view(from, bytes);
    if (!target || !source) return kInvalidValue;
    return issue(gpu, stream, [=](Gpu& g) {
      note(g, to, bytes, true, "cuMemcpyDtoDAsync");
      note(g, from, bytes, false, "cuMemcpyDtoDAsync");
      std::memmove(target, source, bytes);
      return kSuccess;
    });
  });
}
Result cuMemsetD8Async(DeviceAddress address, unsigned char value, std::size_t bytes,
                       StreamHandle stream) {
  return on_gpu([&](Gpu& gpu, auto&) {
    char* view = gpu.memory.view(address, bytes);
    if (!view) return kInvalidValue;
    return issue(gpu, stream, [=](Gpu& g) {
      note(g, address, bytes, true, "cuMemsetD8Async");
      std::memset(view, value, bytes);
      return kSuccess;
    });
  });
}

Result cuStreamCreateWithPriority(StreamHandle* stream, unsigned, int) {
  return on_gpu([&](Gpu& gpu, auto&) {
    *stream = new OpaqueStream(gpu, gpu.options.seed * 31 + ++gpu.streams_made);
    gpu.streams.insert(*stream);
    return kSuccess;
  });
}
// Also after a sticky error, so that nothing is left.
Result cuStreamDestroy_v2(StreamHandle stream) {
  if (!current) return kInvalidContext;
  {
    std::lock_guard lock(current->gpu.mutex);
    if (current->gpu.streams.erase(stream) == 0) return kInvalidHandle;
  }
  delete stream;
  return kSuccess;
}
Result cuStreamSynchronize(StreamHandle stream) {
  return on_gpu([&](Gpu& gpu, std::unique_lock<std::mutex>& lock) {
    if (gpu.streams.count(stream) == 0) return kInvalidHandle;
    gpu.changed.wait(lock, [&] { return stream->items.empty() && !stream->busy; });
    join(gpu.host, stream->known);
    return gpu.sticky;
  });
}
Result cuStreamWaitEvent(StreamHandle stream, EventHandle event, unsigned) {
  return on_gpu([&](Gpu& gpu, auto&) {
    if (gpu.events.count(event) == 0) return kInvalidHandle;
    if (gpu.streams.count(stream) != 0) join(stream->known, event->known);
    return issue(gpu, stream, [reached = event->reached, until = event->recorded](Gpu& g) {
      std::unique_lock lock(g.mutex);
      g.changed.wait(lock, [&] { return reached->record >= until || g.sticky != kSuccess; });
      return kSuccess;
    });
  });
}
Result cuEventCreate(EventHandle* event, unsigned flags) {
  return on_gpu([&](Gpu& gpu, auto&) {
    *event = new OpaqueEvent(gpu, (flags & kEventDisableTiming) == 0);
    gpu.events.insert(*event);
    return kSuccess;
  });
}
Result cuEventDestroy_v2(EventHandle event) {
  if (!current) return kInvalidContext;
  std::lock_guard lock(current->gpu.mutex);
  if (current->gpu.events.erase(event) == 0) return kInvalidHandle;
  delete event;
  return kSuccess;
}
Result cuEventRecord(EventHandle event, StreamHandle stream) {
  return on_gpu([&](Gpu& gpu, auto&) {
    if (gpu.events.count(event) == 0) return kInvalidHandle;
    const Result result =
        issue(gpu, stream, [reached = event->reached, number = ++event->recorded](Gpu& g) {
          std::lock_guard lock(g.mutex);
          reached->record = std::max(reached->record, number);
          reached->time = std::chrono::steady_clock::now();
          g.changed.notify_all();
          return kSuccess;
        });
    if (result == kSuccess) event->known = stream->known;
    if (result == kSuccess && event->timing) ++driving().timed;
    return result;
  });
}
Result cuEventQuery(EventHandle event) {
  return on_gpu([&](Gpu& gpu, auto&) {
    if (gpu.events.count(event) == 0) return kInvalidHandle;
    if (event->reached->record < event->recorded) return kNotReady;
    join(gpu.host, event->known);
    return kSuccess;
  });
}
Result cuEventSynchronize(EventHandle event) {
  return on_gpu([&](Gpu& gpu, std::unique_lock<std::mutex>& lock) {
    if (gpu.events.count(event) == 0) return kInvalidHandle;
    const Clock known = event->known;
    gpu.changed.wait(lock, [&, reached = event->reached, until = event->recorded] {
      return reached->record >= until || gpu.sticky != kSuccess;
    });
    join(gpu.host, known);
    return gpu.sticky;
  });
}

Result cuEventElapsedTime(float* milliseconds, EventHandle from, EventHandle to) {
  return on_gpu([&](Gpu& gpu, auto&) {
    for (const EventHandle event : {from, to}) {
      if (gpu.events.count(event) == 0 || !event->timing || event->recorded == 0)
        return kInvalidHandle;
      if (event->reached->record < event->recorded) return kNotReady;
    }
    const auto apart = to->reached->time - from->reached->time;
    *milliseconds = std::chrono::duration<float, std::milli>(apart).count();
    return kSuccess;
  });
}

Result cuModuleLoadData(ModuleHandle* module, const void* image) {
  const auto* bytes = static_cast<const char*>(image);
  const bool known = std::memcmp(bytes,
                                 "\x7f"
                                 "ELF",
                                 4) == 0 ||
                     std::strcmp(bytes, kImage) == 0;
  const Result result = on_gpu([&](Gpu&, auto&) { return known ? kSuccess : kInvalidImage; });
  if (result != kSuccess) return result;
  *module = new OpaqueModule;
  std::lock_guard lock(driving().mutex);
  ++driving().modules;
  return kSuccess;
}
Result cuModuleUnload(ModuleHandle module) {
  if (!current) return kInvalidContext;
  delete module;
  std::lock_guard lock(driving().mutex);
  --driving().modules;
  return kSuccess;
}
Result cuModuleGetFunction(FunctionHandle* function, ModuleHandle, const char* name) {
  if (const Result result = on_gpu([](Gpu&, auto&) { return kSuccess; }); result != kSuccess)
    return result;
  std::lock_guard lock(driving().mutex);
  const auto found = driving().kernels.find(std::string_view(name));
  if (found == driving().kernels.end()) return kNotFound;
  *function = &found->second;
  return kSuccess;
}
Result cuLaunchKernel(FunctionHandle function, unsigned grid_x, unsigned grid_y, unsigned grid_z,
                      unsigned block_x, unsigned block_y, unsigned block_z, unsigned shared_bytes,
                      StreamHandle stream, void** values, void**) {
  const std::array<unsigned, 3> grid = {grid_x, grid_y, grid_z};
  const std::array<unsigned, 3> block = {block_x, block_y, block_z};
  // Limits of sm_90.
  const bool some = std::count(grid.begin(), grid.end(), 0u) == 0 &&
                    std::count(block.begin(), block.end(), 0u) == 0;
  if (!some || grid[1] > 65535 || grid[2] > 65535 || shared_bytes > 232448 ||
      std::uint64_t(block[0]) * block[1] * block[2] > 1024)
    return kInvalidValue;
  return on_gpu([&](Gpu& gpu, auto&) {
    std::atomic<std::size_t>& most = driving().most_blocks;
    most.store(std::max(most.load(), std::size_t(grid[0]) * grid[1] * grid[2]));
    return issue(gpu, stream, [=, a = Arguments(function->sizes, values)](Gpu& g) mutable {
      {
        std::lock_guard lock(g.mutex);
        if (++g.launches == g.options.launch_error_at && g.options.happens())
          return Result(g.options.error);
        if (!a.translate(g, function->emulated != nullptr)) return kIllegalAddress;
      }
      if (function->emulated) take_longer(g, function->emulated->name);
      const std::vector<const void*> pointers = a.pointers();
      if (function->emulated) {
        troupe::simt::run(
            {{grid[0], grid[1], grid[2]}, {block[0], block[1], block[2]}, g.options.order},
            function->emulated->body, pointers[0]);
        return kSuccess;
      }
      Launched launched{{}, {}, pointers.data()};
      std::copy_n(grid.data(), 3, launched.grid);
      std::copy_n(block.data(), 3, launched.block);
      return function->run(launched);
    });
  });
}

}  // extern "C"
#pragma GCC visibility pop

namespace {

// Each is what the table says: one that is missing or otherwise does not compile.
[[maybe_unused]] const DriverTable kComplete = {
    .cuInit = cuInit,
    .cuDriverGetVersion = cuDriverGetVersion,
    .cuGetErrorName = cuGetErrorName,
    .cuGetErrorString = cuGetErrorString,
    .cuDeviceGetCount = cuDeviceGetCount,
    .cuDeviceGet = cuDeviceGet,
    .cuDeviceGetName = cuDeviceGetName,
    .cuDeviceTotalMem_v2 = cuDeviceTotalMem_v2,
    .cuDeviceGetAttribute = cuDeviceGetAttribute,
    .cuDevicePrimaryCtxRetain = cuDevicePrimaryCtxRetain,
    .cuDevicePrimaryCtxRelease_v2 = cuDevicePrimaryCtxRelease_v2,
    .cuCtxSetCurrent = cuCtxSetCurrent,
    .cuMemGetInfo_v2 = cuMemGetInfo_v2,
    .cuMemAlloc_v2 = cuMemAlloc_v2,
    .cuMemFree_v2 = cuMemFree_v2,
    .cuMemHostAlloc = cuMemHostAlloc,
    .cuMemFreeHost = cuMemFreeHost,
    .cuMemcpyHtoDAsync_v2 = cuMemcpyHtoDAsync_v2,
    .cuMemcpyDtoHAsync_v2 = cuMemcpyDtoHAsync_v2,
    .cuMemcpyDtoDAsync_v2 = cuMemcpyDtoDAsync_v2,
    .cuMemsetD8Async = cuMemsetD8Async,
    .cuStreamCreateWithPriority = cuStreamCreateWithPriority,
    .cuStreamDestroy_v2 = cuStreamDestroy_v2,
    .cuStreamSynchronize = cuStreamSynchronize,
    .cuStreamWaitEvent = cuStreamWaitEvent,
    .cuEventCreate = cuEventCreate,
    .cuEventDestroy_v2 = cuEventDestroy_v2,
    .cuEventRecord = cuEventRecord,
    .cuEventQuery = cuEventQuery,
    .cuEventSynchronize = cuEventSynchronize,
    .cuEventElapsedTime = cuEventElapsedTime,
    .cuModuleLoadData = cuModuleLoadData,
    .cuModuleUnload = cuModuleUnload,
    .cuModuleGetFunction = cuModuleGetFunction,
    .cuLaunchKernel = cuLaunchKernel,
};

}  // namespace
