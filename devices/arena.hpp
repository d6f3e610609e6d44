// Arena: an allocator that recycles blocks, because steps request the same sizes again and again.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "core/buffer.hpp"

namespace troupe {

// The source of an arena's memory: the operating system, or a device's address space. Called
// rarely, by one thread at a time.
class PageSource {
 public:
  virtual ~PageSource() = default;
  // At least `bytes`, aligned to 4 KiB, or nullptr.
  virtual void* take(std::size_t bytes) = 0;
  // `bytes`: as passed to take().
  virtual void give_back(void* pages, std::size_t bytes) noexcept = 0;
  virtual MemorySpace space() const { return MemorySpace::host; }
};

// Anonymous memory of this process, in huge pages where possible.
std::unique_ptr<PageSource> host_pages();

// Small blocks (up to 128 KiB) have sizes in steps of 64 bytes up to 512, and 8 sizes per doubling
// above. Each size has a free list with a spinlock, filled from slabs that are never returned.
// Large blocks have their own pages, which are kept when freed and reused by best fit. The free
// lists are outside the blocks: an arena never touches the memory it hands out, which may be a
// device's. Any thread.
//
// Owned through ArenaPtr. A block may outlive the owner (a fetched tensor that the client keeps
// longer than the session): the arena lives until both the owner and the last block are gone.
class Arena final : public Allocator {
 public:
  // At most `cap` bytes are in use at a time (0: no limit); beyond it allocate returns nullptr.
  explicit Arena(std::unique_ptr<PageSource> pages, std::size_t cap);
  Arena(const Arena&) = delete;
  Arena& operator=(const Arena&) = delete;

  void* allocate(std::size_t bytes) override;
  void deallocate(void* data, std::size_t bytes) noexcept override;
  MemorySpace space() const override { return space_; }

  // Bytes handed out, in whole blocks.
  std::size_t bytes_in_use() const { return in_use_.load(std::memory_order_relaxed) - kOwner; }
  std::size_t peak_bytes() const { return peak_.load(std::memory_order_relaxed); }
  void reset_peak() { peak_.store(bytes_in_use(), std::memory_order_relaxed); }
  // Bytes taken from the page source and not given back.
  std::size_t bytes_held() const { return held_.load(std::memory_order_relaxed); }

  // Returns free large blocks to the source, largest first, until at most `keep` bytes are left.
  // Automatic only if the source has no more memory, or if the arena would hold more than the cap.
  void trim(std::size_t keep = 0);

  // The owner gives up the arena; see above.
  void retire() noexcept { uncount(kOwner); }

  // The size of the block that serves `bytes`.
  static std::size_t block_size(std::size_t bytes);

 private:
  static constexpr std::size_t kLargestSmall = 128 * 1024;
  static constexpr int kClasses = 72;  // 64 bytes .. 128 KiB
  // The owner's share of in_use_; 0 then means that the owner and all blocks are gone.
  static constexpr std::size_t kOwner = 1;

  // Held for a few instructions. A waiter yields after a while, since the holder may be preempted.
  class SpinLock {
   public:
    void lock();
    void unlock() { taken_.store(false, std::memory_order_release); }

   private:
    std::atomic<bool> taken_{false};
  };
  struct alignas(64) SizeClass {
    SpinLock lock;
    std::vector<void*> free;  // has capacity for every block made: freeing never allocates
    std::size_t made = 0;
  };
  using FreeBySize = std::multimap<std::size_t, void*>;

  ~Arena() override;
  static int class_of(std::size_t bytes);
  bool count(std::size_t bytes);
  void uncount(std::size_t bytes) noexcept;
  void* take_small(SizeClass& c, std::size_t size);
  bool refill(SizeClass& c, std::size_t size);
  bool open_slab(std::size_t size);
  void* take_large(std::size_t size);
  void* take_pages(std::size_t bytes);
  void trim_locked(std::size_t keep) noexcept;

  const std::unique_ptr<PageSource> pages_;
  const MemorySpace space_;
  const std::size_t cap_;
  alignas(64) std::atomic<std::size_t> in_use_{kOwner};
  std::atomic<std::size_t> peak_{0}, held_{0};
  std::array<SizeClass, kClasses> classes_;

  std::mutex pages_mutex_;  // guards what follows; taken inside a class's lock, never around one
  std::vector<std::pair<void*, std::size_t>> slabs_;
  char* slab_next_ = nullptr;
  std::size_t slab_left_ = 0;
  // The entry of a large block moves between the two maps as it is freed and reused, so that
  // freeing allocates nothing.
  FreeBySize free_large_;
  std::unordered_map<void*, FreeBySize::node_type> used_large_;
  std::size_t free_large_bytes_ = 0;
};

struct RetireArena {
  void operator()(Arena* arena) const noexcept { arena->retire(); }
};
using ArenaPtr = std::unique_ptr<Arena, RetireArena>;

ArenaPtr make_arena(std::size_t cap = 0, std::unique_ptr<PageSource> pages = host_pages());

}  // namespace troupe
