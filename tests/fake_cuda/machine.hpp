// The GPUs of the fake driver: their memory, streams and events.
#pragma once

#include <array>
#include <chrono>
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
#include <string_view>
#include <thread>
#include <vector>

#include "tests/fake_cuda/fake_cuda.hpp"

namespace troupe::fake_cuda {

struct Options {
  int devices = 1, version = 13000, architecture = 90;
  bool stub = false, no_pinned = false, check = false;
  std::uint64_t memory = std::uint64_t{1} << 30;
  std::uint64_t delay_us = 0, seed = 1, order = 0;
  std::uint64_t out_of_memory_at = 0, out_of_memory_from = ~std::uint64_t{0}, launch_error_at = 0;
  int error = cuda::kIllegalAddress;
  std::string slow, once;
  // Whether a fault that is due happens here.
  bool happens() const;
  std::uint64_t slow_us = 0;
  // How much longer an item takes.
  std::uint64_t slow_us_of(std::string_view name) const {
    return !slow.empty() && name.substr(0, slow.size()) == slow ? slow_us : 0;
  }

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

  static bool of_any(cuda::DeviceAddress address);  // of some GPU

  cuda::DeviceAddress allocate(std::size_t bytes);  // 0: there is none
  bool free(cuda::DeviceAddress address);
  std::size_t block_bytes(cuda::DeviceAddress block) const;  // 0: there is none
  std::size_t offset(cuda::DeviceAddress address) const { return address - base(); }
  // Where the fake reaches the bytes, as an address.
  cuda::DeviceAddress address_of(const char* view) const {
    return view >= open_ && view < open_ + bytes_ ? base() + std::size_t(view - open_) : 0;
  }
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

// How far each stream has come, as far as somebody knows.
using Clock = std::map<cuda::StreamHandle, std::uint64_t>;
void join(Clock& into, const Clock& other);

// What one item of work does to memory. Two of them are in order if the one that was issued later
// knew of the other: through its stream, an event that it waits for, or the host, which has seen
// the other's end.
struct Access {
  std::size_t begin, end;  // offsets
  bool write = false;
  cuda::StreamHandle stream = nullptr;
  std::uint64_t number = 0;
  Clock known;  // when it was issued
  std::string what;
};

// An item of work, and when it was issued.
struct Work {
  std::function<cuda::Result(Gpu&)> run;
  cuda::StreamHandle stream = nullptr;
  std::uint64_t number = 0;
  Clock known;
};

// One GPU while its primary context exists. One mutex guards all of it, streams and events too.
class Gpu {
 public:
  explicit Gpu(const Options& options) : options(options), memory(options.memory) {}
  ~Gpu();

  const Options options;
  std::mutex mutex;
  std::condition_variable changed;  // an event is reached, a stream has nothing left, or it failed
  Memory memory;
  std::set<cuda::StreamHandle> streams;
  std::set<cuda::EventHandle> events;
  std::uint64_t allocations = 0, launches = 0, streams_made = 0;
  cuda::Result sticky = cuda::kSuccess;  // once an error, of every call

  Clock host;                   // what the host has seen the end of
  std::deque<Access> accesses;  // the last ones
  // With the mutex held:
  void fail(cuda::Result error);
  bool idle() const;
  // That `work` reads or writes this memory; a conflict with what is not in order is reported.
  void note(const Work& work, cuda::DeviceAddress address, std::size_t bytes, bool write,
            const char* what);
  void forget(cuda::DeviceAddress block);  // that is freed
};

// What was found wrong since the last call.
void report(const std::string& text);
std::string take_reports();
// The work that the calling thread runs, for kernels that say what they touch.
const Work* running();

}  // namespace troupe::fake_cuda

namespace troupe::cuda {

// In order, on its own thread. Guarded by the GPU's mutex.
struct OpaqueStream {
  OpaqueStream(fake_cuda::Gpu& gpu, std::uint64_t seed);
  ~OpaqueStream();  // what was issued runs first; without the mutex
  void run();

  fake_cuda::Gpu& gpu;
  std::mt19937_64 random;        // of its thread
  std::condition_variable more;  // there is an item, or no more to come
  std::deque<fake_cuda::Work> items;
  std::uint64_t issued = 0;
  fake_cuda::Clock known;  // what its next item comes after
  bool busy = false, stopping = false;
  std::thread thread;
};

// Recorded so often, and reached by its stream up to one of these times.
struct OpaqueEvent {
  OpaqueEvent(fake_cuda::Gpu& g, bool t) : gpu(g), timing(t) {}
  fake_cuda::Gpu& gpu;
  const bool timing;
  // Work under way refers to it when the event may be destroyed.
  struct Reached {
    std::uint64_t record = 0;
    std::chrono::steady_clock::time_point time;  // of the last
  };
  std::uint64_t recorded = 0;
  const std::shared_ptr<Reached> reached = std::make_shared<Reached>();
  fake_cuda::Clock known;  // of the last record
};

}  // namespace troupe::cuda
