// The GPUs of the fake driver: their memory, streams and events.
#pragma once

#include <array>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <random>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "tests/fake_cuda/fake_cuda.hpp"

namespace troupe::fake_cuda {

struct Options {
  int devices = 1, version = 13000;
  bool stub = false, no_pinned = false;
  std::uint64_t memory = std::uint64_t{1} << 30;
  std::uint64_t delay_us = 0, seed = 1, order = 0;
  std::uint64_t out_of_memory_at = 0, launch_error_at = 0;
  int error = cuda::kIllegalAddress;

  static Options from_environment();  // ends the process on what it does not know
};

// Device memory: addresses that nobody may touch, and a second mapping for the fake's own threads.
// Guarded by the GPU's mutex.
class Memory {
 public:
  explicit Memory(std::size_t bytes);
  ~Memory();
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;

  cuda::DeviceAddress allocate(std::size_t bytes);  // 0: there is none
  bool free(cuda::DeviceAddress address);
  bool inside(cuda::DeviceAddress address) const { return address - base() < bytes_; }
  // Where the fake reaches the bytes; null unless all of them are of one live block.
  char* view(cuda::DeviceAddress address, std::size_t bytes) const;
  std::size_t blocks() const { return used_.size(); }
  std::size_t free_bytes() const;

 private:
  cuda::DeviceAddress base() const { return reinterpret_cast<cuda::DeviceAddress>(closed_); }
  const std::size_t bytes_;
  char* const closed_;
  char* const open_;
  std::map<std::size_t, std::size_t> used_;  // offset to size
};

class Gpu;
using Work = std::function<cuda::Result(Gpu&)>;

// One GPU while its primary context exists. One mutex guards all of it, streams and events too.
class Gpu {
 public:
  explicit Gpu(const Options& options) : options(options), memory(options.memory) {}
  ~Gpu();

  const Options options;
  std::mutex mutex;
  std::condition_variable changed;
  Memory memory;
  std::set<cuda::StreamHandle> streams;
  std::set<cuda::EventHandle> events;
  std::uint64_t allocations = 0, launches = 0, streams_made = 0;
  cuda::Result sticky = cuda::kSuccess;  // once an error, of every call

  // With the mutex held:
  void fail(cuda::Result error);
  bool idle() const;
};

}  // namespace troupe::fake_cuda

namespace troupe::cuda {

// In order, on its own thread. Guarded by the GPU's mutex.
struct OpaqueStream {
  OpaqueStream(fake_cuda::Gpu& gpu, std::uint64_t seed);
  ~OpaqueStream();  // what was issued runs first; without the mutex
  void run();

  fake_cuda::Gpu& gpu;
  std::mt19937_64 random;  // of its thread
  std::deque<fake_cuda::Work> items;
  bool busy = false, stopping = false;
  std::thread thread;
};

// Recorded so often, and reached by its stream up to one of these times.
struct OpaqueEvent {
  explicit OpaqueEvent(fake_cuda::Gpu& g) : gpu(g) {}
  fake_cuda::Gpu& gpu;
  std::uint64_t recorded = 0, reached = 0;
};

}  // namespace troupe::cuda
