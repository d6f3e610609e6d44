#include "devices/arena.hpp"

#include <sys/mman.h>

#include <algorithm>
#include <bit>
#include <new>
#include <thread>

#include "core/check.hpp"
#include "devices/detail/poison.hpp"
#include "devices/detail/spin.hpp"

namespace troupe {
namespace {

constexpr std::size_t kHugePage = 2 * 1024 * 1024;
constexpr std::size_t kSlab = kHugePage;
constexpr std::size_t kRefill = 64 * 1024;

class HostPages final : public PageSource {
 public:
  void* take(std::size_t bytes) override {
    if (bytes < kHugePage) return map(bytes);
    // The kernel uses huge pages only for aligned memory: map more, then unmap both ends.
    auto* mapped = static_cast<char*>(map(bytes + kHugePage));
    if (!mapped) return nullptr;
    const auto address = reinterpret_cast<std::uintptr_t>(mapped);
    const std::size_t head = (kHugePage - address % kHugePage) % kHugePage;
    if (head != 0) munmap(mapped, head);
    if (head != kHugePage) munmap(mapped + head + bytes, kHugePage - head);
    madvise(mapped + head, bytes, MADV_HUGEPAGE);  // only advice, so failure is no error
    return mapped + head;
  }
  void give_back(void* pages, std::size_t bytes) noexcept override { munmap(pages, bytes); }

 private:
  static void* map(std::size_t bytes) {
    void* p = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return p == MAP_FAILED ? nullptr : p;
  }
};

}  // namespace

std::unique_ptr<PageSource> host_pages() { return std::make_unique<HostPages>(); }

ArenaPtr make_arena(std::size_t cap, std::unique_ptr<PageSource> pages) {
  return ArenaPtr(new Arena(std::move(pages), cap));
}

Arena::Arena(std::unique_ptr<PageSource> pages, std::size_t cap)
    : pages_(std::move(pages)), space_(pages_->space()), cap_(cap) {}

Arena::~Arena() {
  TROUPE_CHECK(used_large_.empty(), "an arena outlives its blocks");
  trim_locked(0);
  for (auto [slab, bytes] : slabs_) {
    if (space_ == MemorySpace::host) detail::unpoison(slab, bytes);
    pages_->give_back(slab, bytes);
  }
}

void* Arena::allocate(std::size_t bytes) {
  // Above this, rounding up may overflow.
  if (bytes > std::size_t{1} << 62) return nullptr;
  const std::size_t size = block_size(bytes);
  if (!count(size)) return nullptr;
  void* data = nullptr;
  try {
    data = size <= kLargestSmall ? take_small(classes_[std::size_t(class_of(bytes))], size)
                                 : take_large(size);
  } catch (const std::bad_alloc&) {  // of the bookkeeping; the same to the caller
  }
  if (!data) uncount(size);
  if (data && space_ == MemorySpace::host) detail::unpoison(data, bytes);
  return data;
}

void Arena::deallocate(void* data, std::size_t bytes) noexcept {
  const std::size_t size = block_size(bytes);
  if (space_ == MemorySpace::host) detail::poison(data, size);
  if (size <= kLargestSmall) {
    SizeClass& c = classes_[std::size_t(class_of(bytes))];
    std::lock_guard lock(c.lock);
    c.free.push_back(data);
  } else {
    std::lock_guard lock(pages_mutex_);
    auto used = used_large_.find(data);
    TROUPE_CHECK(used != used_large_.end(), "a block goes back to the arena that made it");
    // Before others of its size: the last one used has its pages mapped, and may be in a cache.
    const std::size_t key = used->second.key();
    free_large_bytes_ += key;
    free_large_.insert(free_large_.lower_bound(key), std::move(used->second));
    used_large_.erase(used);
  }
  uncount(size);  // last: this may delete the arena
}

void Arena::trim(std::size_t keep) {
  std::lock_guard lock(pages_mutex_);
  trim_locked(keep);
}

// Class k serves (64k, 64(k+1)] up to 512; then 8 classes for each (2^e, 2^(e+1)].
int Arena::class_of(std::size_t bytes) {
  if (bytes <= 512) return bytes == 0 ? 0 : int((bytes - 1) / 64);
  const int e = std::bit_width(bytes - 1) - 1;
  return (e - 9) * 8 + int((bytes - 1) >> (e - 3));
}

std::size_t Arena::block_size(std::size_t bytes) {
  if (bytes <= 512) return bytes == 0 ? 64 : (bytes + 63) / 64 * 64;
  const int e = std::bit_width(bytes - 1) - 1;
  return (((bytes - 1) >> (e - 3)) + 1) << (e - 3);
}

bool Arena::count(std::size_t bytes) {
  const std::size_t now = in_use_.fetch_add(bytes, std::memory_order_relaxed) + bytes - kOwner;
  if (cap_ != 0 && now > cap_) {
    uncount(bytes);
    return false;
  }
  std::size_t peak = peak_.load(std::memory_order_relaxed);
  while (now > peak && !peak_.compare_exchange_weak(peak, now, std::memory_order_relaxed)) {
  }
  return true;
}

// Release and acquire, so that the deleting thread sees all writes of other threads.
void Arena::uncount(std::size_t bytes) noexcept {
  if (in_use_.fetch_sub(bytes, std::memory_order_acq_rel) == bytes) delete this;
}

void* Arena::take_small(SizeClass& c, std::size_t size) {
  std::lock_guard lock(c.lock);
  if (c.free.empty() && !refill(c, size)) return nullptr;
  void* data = c.free.back();
  c.free.pop_back();
  return data;
}

// Cuts some blocks of `size` from the current slab.
bool Arena::refill(SizeClass& c, std::size_t size) {
  std::lock_guard lock(pages_mutex_);
  const std::size_t wanted = std::clamp<std::size_t>(kRefill / size, 1, 64);
  if (c.free.capacity() < c.made + wanted) c.free.reserve(2 * c.made + wanted);
  for (std::size_t i = 0; i < wanted; ++i) {
    if (slab_left_ < size && !open_slab(size)) break;
    c.free.push_back(slab_next_);
    ++c.made;
    slab_next_ += size;
    slab_left_ -= size;
  }
  return !c.free.empty();
}

bool Arena::open_slab(std::size_t size) {
  // A source with little memory left may still have enough for this one block.
  for (std::size_t bytes : {kSlab, (size + 4095) / 4096 * 4096}) {
    void* slab = take_pages(bytes);
    if (!slab) continue;
    if (space_ == MemorySpace::host) detail::poison(slab, bytes);
    slabs_.emplace_back(slab, bytes);
    slab_next_ = static_cast<char*>(slab);
    slab_left_ = bytes;
    return true;
  }
  return false;
}

void* Arena::take_large(std::size_t size) {
  std::lock_guard lock(pages_mutex_);
  auto block = free_large_.lower_bound(size);
  // A much larger block is kept for larger requests, unless there is no other memory.
  if (block == free_large_.end() || block->first > size + size / 4) {
    if (void* pages = take_pages(size)) {
      block = free_large_.emplace(size, pages);
      free_large_bytes_ += size;
    } else {
      block = free_large_.lower_bound(size);
    }
  }
  if (block == free_large_.end()) return nullptr;
  void* data = block->second;
  free_large_bytes_ -= block->first;
  used_large_.emplace(data, free_large_.extract(block));
  return data;
}

void* Arena::take_pages(std::size_t bytes) {
  if (cap_ != 0 && bytes_held() + bytes > cap_) trim_locked(0);
  void* pages = pages_->take(bytes);
  if (!pages && free_large_bytes_ != 0) {
    trim_locked(0);
    pages = pages_->take(bytes);
  }
  if (pages) held_.fetch_add(bytes, std::memory_order_relaxed);
  return pages;
}

void Arena::trim_locked(std::size_t keep) noexcept {
  while (free_large_bytes_ > keep) {
    auto largest = std::prev(free_large_.end());
    if (space_ == MemorySpace::host) detail::unpoison(largest->second, largest->first);
    pages_->give_back(largest->second, largest->first);
    free_large_bytes_ -= largest->first;
    held_.fetch_sub(largest->first, std::memory_order_relaxed);
    free_large_.erase(largest);
  }
}

void Arena::SpinLock::lock() {
  for (int spins = 0; taken_.exchange(true, std::memory_order_acquire); ++spins)
    while (taken_.load(std::memory_order_relaxed)) {
      if (++spins < 200)
        detail::relax();
      else
        std::this_thread::yield();
    }
}

}  // namespace troupe
