// Memory of a tensor: ref-counted, 64-byte aligned, returned to the allocator that made it.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <utility>

#include "core/status.hpp"

namespace troupe {

inline constexpr std::size_t kBufferAlignment = 64;

// Where the bytes of a buffer can be touched. `host` is readable by any thread of this process;
// `device` only by work issued on the device that owns it.
enum class MemorySpace : std::uint8_t { host = 0, device = 1 };

class Buffer;

// Makes and takes back blocks. Implementations: heap (below), the arenas of devices/. Safe to call
// from any thread; outlives every buffer it made.
class Allocator {
 public:
  virtual ~Allocator() = default;
  // A block of at least `bytes` (0 is legal), aligned to 64, or nullptr when memory is short.
  virtual void* allocate(std::size_t bytes) = 0;
  // `bytes` as asked of allocate.
  virtual void deallocate(void* data, std::size_t bytes) noexcept = 0;
  virtual MemorySpace space() const { return MemorySpace::host; }
};

// The C library's. For values that belong to no device: feeds, constants, files.
Allocator& heap_allocator();

// A shared reference to one block. The bytes of a block that anybody else can see are never
// written; `unique()` is the test that allows writing in place. Copying is one atomic increment.
class Buffer {
 public:
  Buffer() = default;
  Buffer(const Buffer& other) noexcept : block_(other.block_) {
    if (block_) block_->refs.fetch_add(1, std::memory_order_relaxed);
  }
  Buffer(Buffer&& other) noexcept : block_(std::exchange(other.block_, nullptr)) {}
  Buffer& operator=(Buffer other) noexcept {
    std::swap(block_, other.block_);
    return *this;
  }
  ~Buffer() {
    if (block_ && block_->refs.fetch_sub(1, std::memory_order_acq_rel) == 1) release(block_);
  }

  // resource_exhausted when the allocator has no memory.
  static Expected<Buffer> allocate(Allocator& allocator, std::size_t bytes);
  // Memory that somebody else owns, such as a mapped file: it is never written in place, and never
  // unique(). `release(context)` is called once, from any thread, when the last reference goes; the
  // bytes must stay as they are until then, since a fetch or a variable may have them as its value.
  static Buffer wrap(void* data, std::size_t bytes, MemorySpace space, void (*release)(void*),
                     void* context);
  // The same of memory that nobody else looks at until it is released, such as a received message.
  static Buffer wrap_own(void* data, std::size_t bytes, MemorySpace space, void (*release)(void*),
                         void* context);

  // Memory that somebody else took, which goes back to `allocator`.
  static Buffer hand_over(void* data, std::size_t bytes, Allocator& allocator);

  explicit operator bool() const { return block_ != nullptr; }
  void* data() const { return block_ ? block_->data : nullptr; }
  std::size_t size() const { return block_ ? block_->size : 0; }
  MemorySpace space() const { return block_ ? block_->space : MemorySpace::host; }
  // Where the memory goes back to; null when it is wrapped, or there is none.
  const Allocator* allocator() const { return block_ ? block_->allocator : nullptr; }
  bool unique() const { return held_by(1); }
  // Whether that many references, which are all the caller's, are all that there are, and the
  // memory may be written.
  bool held_by(std::size_t references) const {
    return block_ && block_->refs.load(std::memory_order_acquire) == references && !block_->foreign;
  }
  friend bool operator==(const Buffer& a, const Buffer& b) { return a.block_ == b.block_; }
  // By the block; for sorted containers.
  friend bool operator<(const Buffer& a, const Buffer& b) {
    return std::less<>()(a.block_, b.block_);
  }

  // Called before the block goes back, for element types that need it (strings). At most one;
  // set by the tensor that constructs the elements, while the buffer is unique.
  void on_destroy(void (*destroy)(void* data, std::size_t bytes)) { block_->destroy = destroy; }

 private:
  struct Block {
    std::atomic<std::uint32_t> refs{1};
    MemorySpace space = MemorySpace::host;
    bool together = false;  // with its bytes behind it, in one piece of the allocator's
    bool foreign = false;   // others may look at its bytes
    void* data = nullptr;
    std::size_t size = 0;
    Allocator* allocator = nullptr;    // null: wrapped
    void (*release)(void*) = nullptr;  // wrapped memory only
    void* context = nullptr;
    void (*destroy)(void*, std::size_t) = nullptr;
  };
  explicit Buffer(Block* block) : block_(block) {}
  static void release(Block* block) noexcept;

  Block* block_ = nullptr;
};

}  // namespace troupe
