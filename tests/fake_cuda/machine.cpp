#include "tests/fake_cuda/machine.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <sstream>
#include <utility>

namespace troupe::fake_cuda {
namespace {

constexpr std::size_t kAlignment = 512;

[[noreturn]] void refuse(const std::string& what) {
  std::fprintf(stderr, "TROUPE_FAKE_CUDA: %s\n", what.c_str());
  std::abort();
}

std::uint64_t number_of(const std::string& entry, const std::string& text) {
  char* end = nullptr;
  const std::uint64_t value = std::strtoull(text.c_str(), &end, 10);
  if (text.empty() || *end != '\0') refuse("no number: " + entry);
  return value;
}

std::mutex memories_mutex;
std::set<const Memory*> memories;

char* reserve(std::size_t bytes, int protection) {
  void* p = mmap(nullptr, bytes, protection, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (p == MAP_FAILED) refuse("no address space");
  return static_cast<char*>(p);
}

}  // namespace

Options Options::from_environment() {
  Options o;
  const char* text = std::getenv("TROUPE_FAKE_CUDA");
  std::istringstream entries(text ? text : "");
  for (std::string entry; std::getline(entries, entry, ',');) {
    const std::size_t equals = std::min(entry.find('='), entry.size());
    const std::string key = entry.substr(0, equals);
    if (key == "slow" || key == "once") {
      (key == "slow" ? o.slow : o.once) = entry.substr(std::min(equals + 1, entry.size()));
      continue;
    }
    const std::uint64_t value =
        number_of(entry, equals < entry.size() ? entry.substr(equals + 1) : "");
    if (key == "devices")
      o.devices = int(value);
    else if (key == "version")
      o.version = int(value);
    else if (key == "architecture")
      o.architecture = int(value);
    else if (key == "stub")
      o.stub = value != 0;
    else if (key == "no_pinned")
      o.no_pinned = value != 0;
    else if (key == "check")
      o.check = value != 0;
    else if (key == "memory_mb")
      o.memory = value << 20;
    else if (key == "delay_us")
      o.delay_us = value;
    else if (key == "seed")
      o.seed = value;
    else if (key == "order")
      o.order = value;
    else if (key == "out_of_memory_at")
      o.out_of_memory_at = value;
    else if (key == "out_of_memory_from")
      o.out_of_memory_from = value;
    else if (key == "launch_error_at")
      o.launch_error_at = value;
    else if (key == "slow_us")
      o.slow_us = value;
    else if (key == "error")
      o.error = int(value);
    else
      refuse("no such key: " + entry);
  }
  return o;
}

// The file that this process has made is its own from then on.
bool Options::happens() const {
  static std::mutex mutex;
  static std::set<std::string> made;
  if (once.empty()) return true;
  std::lock_guard lock(mutex);
  if (made.count(once) != 0) return true;
  const int file = open(once.c_str(), O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  if (file < 0) return false;
  close(file);
  made.insert(once);
  return true;
}

Memory::Memory(std::size_t bytes)
    : bytes_(bytes),
      closed_(reserve(bytes, PROT_NONE)),
      open_(reserve(bytes, PROT_READ | PROT_WRITE)) {
  std::lock_guard lock(memories_mutex);
  memories.insert(this);
}

Memory::~Memory() {
  {
    std::lock_guard lock(memories_mutex);
    memories.erase(this);
  }
  munmap(closed_, bytes_);
  munmap(open_, bytes_);
}

bool Memory::of_any(cuda::DeviceAddress address) {
  std::lock_guard lock(memories_mutex);
  return std::any_of(memories.begin(), memories.end(),
                     [&](const Memory* memory) { return memory->inside(address); });
}

// First fit. Fresh memory is NaN: nobody may rely on zeros.
cuda::DeviceAddress Memory::allocate(std::size_t bytes) {
  const std::size_t size = (bytes + kAlignment - 1) / kAlignment * kAlignment;
  std::size_t at = kAlignment;  // no block is at the very beginning
  for (const auto& [offset, used] : used_) {
    if (offset - at >= size) break;
    at = offset + used;
  }
  if (size == 0 || size > bytes_ || at > bytes_ - size) return 0;
  used_[at] = size;
  std::memset(open_ + at, 0xff, size);
  return base() + at;
}

bool Memory::free(cuda::DeviceAddress address) {
  const auto block = used_.find(address - base());
  if (block == used_.end()) return false;
  madvise(open_ + block->first, block->second, MADV_DONTNEED);  // advice: keeping is no error
  used_.erase(block);
  return true;
}

char* Memory::view(cuda::DeviceAddress address, std::size_t bytes) const {
  if (!inside(address)) return nullptr;
  const std::size_t offset = address - base();
  auto block = used_.upper_bound(offset);
  if (block == used_.begin()) return nullptr;
  --block;
  const std::size_t in_block = offset - block->first;
  if (in_block > block->second || bytes > block->second - in_block) return nullptr;
  return open_ + offset;
}

std::size_t Memory::free_bytes() const {
  std::size_t free = bytes_;
  for (const auto& [offset, used] : used_) free -= used;
  return free;
}

std::size_t Memory::block_bytes(cuda::DeviceAddress address) const {
  const auto block = used_.find(address - base());
  return block == used_.end() ? 0 : block->second;
}

void join(Clock& into, const Clock& other) {
  for (const auto& [stream, number] : other) {
    std::uint64_t& known = into[stream];
    known = std::max(known, number);
  }
}

namespace {

std::mutex reports_mutex;
std::string reports;
thread_local const Work* work_of_thread = nullptr;

// `later` knew of `earlier` when it was issued.
bool knew(const Clock& later, cuda::StreamHandle stream, std::uint64_t number) {
  const auto known = later.find(stream);
  return known != later.end() && known->second >= number;
}

}  // namespace

void report(const std::string& text) {
  std::lock_guard lock(reports_mutex);
  reports += text + "\n";
}
std::string take_reports() {
  std::lock_guard lock(reports_mutex);
  return std::exchange(reports, {});
}
const Work* running() { return work_of_thread; }

void Gpu::note(const Work& work, cuda::DeviceAddress address, std::size_t bytes, bool write,
               const char* what) {
  if (!options.check || bytes == 0) return;
  const std::size_t begin = memory.offset(address);
  Access now{begin, begin + bytes, write, work.stream, work.number, work.known, what};
  for (const Access& before : accesses) {
    const bool apart = before.end <= now.begin || now.end <= before.begin;
    if (apart || !(before.write || now.write) || before.stream == now.stream) continue;
    if (knew(now.known, before.stream, before.number) || knew(before.known, now.stream, now.number))
      continue;
    const auto text = [](const Access& a) {
      return a.what + (a.write ? " writes" : " reads") + std::string(" offsets ") +
             std::to_string(a.begin) + " to " + std::to_string(a.end);
    };
    report("not in order: " + text(before) + ", and on another stream " + text(now));
  }
  constexpr std::size_t kMost = 4096;
  accesses.push_back(std::move(now));
  if (accesses.size() > kMost) accesses.pop_front();
}

void Gpu::forget(cuda::DeviceAddress block) {
  const std::size_t begin = memory.offset(block), end = begin + memory.block_bytes(block);
  std::erase_if(accesses, [&](const Access& a) { return a.begin < end && begin < a.end; });
}

Gpu::~Gpu() {
  for (cuda::StreamHandle stream : std::exchange(streams, {})) delete stream;
  for (cuda::EventHandle event : events) delete event;
}

void Gpu::fail(cuda::Result error) {
  if (sticky == cuda::kSuccess) sticky = error;
  changed.notify_all();
}

bool Gpu::idle() const {
  for (const cuda::StreamHandle stream : streams)
    if (stream->busy || !stream->items.empty()) return false;
  return true;
}

}  // namespace troupe::fake_cuda

namespace troupe::cuda {

OpaqueStream::OpaqueStream(fake_cuda::Gpu& g, std::uint64_t seed)
    : gpu(g), random(seed), thread([this] { run(); }) {}

OpaqueStream::~OpaqueStream() {
  {
    std::lock_guard lock(gpu.mutex);
    stopping = true;
    more.notify_one();
  }
  thread.join();
}

// After a sticky error nothing runs any more: a GPU keeps none of its promises then.
void OpaqueStream::run() {
  std::unique_lock lock(gpu.mutex);
  for (;;) {
    more.wait(lock, [&] { return !items.empty() || stopping; });
    if (items.empty()) return;
    fake_cuda::Work work = std::move(items.front());
    items.pop_front();
    busy = true;
    if (gpu.sticky == kSuccess) {
      lock.unlock();
      if (gpu.options.delay_us != 0 && random() % 4 != 0)
        std::this_thread::sleep_for(
            std::chrono::microseconds(random() % (gpu.options.delay_us + 1)));
      fake_cuda::work_of_thread = &work;
      const Result result = work.run(gpu);
      fake_cuda::work_of_thread = nullptr;
      work.run = nullptr;
      lock.lock();
      if (result != kSuccess) gpu.fail(result);
    }
    busy = false;
    if (items.empty()) gpu.changed.notify_all();
  }
}

}  // namespace troupe::cuda
