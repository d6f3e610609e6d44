#include "actors/net/pool.hpp"

#include <bit>
#include <cstdlib>
#include <mutex>
#include <unordered_map>
#include <vector>

namespace troupe {
namespace {

// Beyond this a size is a mistake or an attack, and no allocator need be asked.
constexpr std::uint64_t kMostBytes = std::uint64_t{1} << 40;

// The smallest class that holds `bytes`: four classes per power of two, at least 256 bytes.
std::uint64_t size_class(std::uint64_t bytes) {
  if (bytes <= 256) return 256;
  std::uint64_t step = std::bit_floor(bytes - 1) / 4;
  return (bytes + step - 1) / step * step;
}

}  // namespace

struct BufferPool::State {
  struct Lease {
    std::shared_ptr<State> state;
    void* data;
    std::uint64_t size;
  };

  static void give_back(void* context) {
    std::unique_ptr<Lease> lease(static_cast<Lease*>(context));
    State& s = *lease->state;
    {
      std::lock_guard lock(s.mutex);
      s.live -= lease->size;
      if (s.kept + lease->size <= s.keep) {
        s.kept += lease->size;
        s.idle[lease->size].push_back(lease->data);
        return;
      }
    }
    std::free(lease->data);
  }

  ~State() {
    for (auto& [size, blocks] : idle) {
      for (void* block : blocks) std::free(block);
    }
  }

  std::mutex mutex;
  std::unordered_map<std::uint64_t, std::vector<void*>> idle;  // by class
  std::uint64_t keep = 0, kept = 0, live = 0;
};

BufferPool::BufferPool(std::uint64_t keep_bytes) : state_(std::make_shared<State>()) {
  state_->keep = keep_bytes;
}

Expected<Buffer> BufferPool::take(std::uint64_t bytes) {
  if (bytes > kMostBytes)
    return resource_exhausted("a buffer of " + std::to_string(bytes) + " bytes");
  std::uint64_t size = size_class(bytes);
  void* data = nullptr;
  {
    std::lock_guard lock(state_->mutex);
    auto it = state_->idle.find(size);
    if (it != state_->idle.end() && !it->second.empty()) {
      data = it->second.back();
      it->second.pop_back();
      state_->kept -= size;
    }
    state_->live += size;
  }
  if (data == nullptr) data = std::aligned_alloc(kBufferAlignment, size);
  if (data == nullptr) {
    std::lock_guard lock(state_->mutex);
    state_->live -= size;
    return resource_exhausted("no memory for a buffer of " + std::to_string(bytes) + " bytes");
  }
  return Buffer::wrap_own(data, bytes, MemorySpace::host, &State::give_back,
                          new State::Lease{state_, data, size});
}

std::uint64_t BufferPool::kept_bytes() const {
  std::lock_guard lock(state_->mutex);
  return state_->kept;
}

std::uint64_t BufferPool::live_bytes() const {
  std::lock_guard lock(state_->mutex);
  return state_->live;
}

}  // namespace troupe
