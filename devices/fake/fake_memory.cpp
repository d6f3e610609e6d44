#include "devices/fake/fake_memory.hpp"

#include <sys/mman.h>

#include <cstring>

#include "core/check.hpp"
#include "devices/detail/extents.hpp"
#include "devices/detail/poison.hpp"

namespace troupe {
namespace {

char* reserve(std::size_t bytes, int protection) {
  void* p = mmap(nullptr, bytes, protection, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  TROUPE_CHECK(p != MAP_FAILED, "the fake device found no address space");
  return static_cast<char*>(p);
}

}  // namespace

// Divides the region by first fit; adjacent free blocks are merged.
class FakeMemory::Pages final : public PageSource {
 public:
  explicit Pages(const Region& region) : region_(region) { free_.add(0, region.bytes); }

  void* take(std::size_t bytes) override {
    const auto at = free_.take((bytes + 4095) / 4096 * 4096);
    return at ? region_.host + *at : nullptr;
  }

  void give_back(void* pages, std::size_t bytes) noexcept override {
    bytes = (bytes + 4095) / 4096 * 4096;
    const auto offset = std::size_t(static_cast<char*>(pages) - region_.host);
    detail::unpoison(region_.device + offset, bytes);
    madvise(region_.device + offset, bytes, MADV_DONTNEED);  // advice: keeping them is no error
    free_.add(offset, bytes);
  }

  MemorySpace space() const override { return MemorySpace::device; }

 private:
  const Region& region_;
  detail::Extents free_;
};

FakeMemory::Region::Region(std::size_t size)
    : bytes(size / 4096 * 4096),
      host(reserve(bytes, PROT_NONE)),
      device(reserve(bytes, PROT_READ | PROT_WRITE)) {}

FakeMemory::Region::~Region() {
  detail::unpoison(device, bytes);
  munmap(host, bytes);
  munmap(device, bytes);
}

FakeMemory::FakeMemory(std::size_t bytes)
    : region_(bytes), arena_(make_arena(0, std::make_unique<Pages>(region_))) {}

void* FakeMemory::allocate(std::size_t bytes) {
  reclaim();
  void* data = arena_->allocate(bytes);
  if (!data) return nullptr;
  holders_.fetch_add(1, std::memory_order_relaxed);
  detail::unpoison(view(data), bytes);
  std::memset(view(data), 0xff, bytes);
  return data;
}

void FakeMemory::deallocate(void* data, std::size_t bytes) noexcept {
  {
    // Under the lock, so that tags are in ascending order.
    std::lock_guard lock(mutex_);
    Tagged block{data, bytes, {}};
    for (std::size_t s = 0; s < kStreams; ++s) block.last[s] = issued_[s].load();
    tagged_.push_back(block);
  }
  reclaim();
  drop();  // last: this may be deleted by it
}

void* FakeMemory::view(const void* address) const {
  const auto offset = std::size_t(static_cast<const char*>(address) - region_.host);
  TROUPE_CHECK(offset < region_.bytes, "an address outside this device's memory");
  return region_.device + offset;
}

std::size_t FakeMemory::bytes_in_use() {
  reclaim();
  return arena_->bytes_in_use();
}

void FakeMemory::reset_peak() {
  reclaim();
  arena_->reset_peak();
}

bool FakeMemory::all_done(const Sequences& last) const {
  for (std::size_t s = 0; s < kStreams; ++s)
    if (done_[s].load() < last[s]) return false;
  return true;
}

void FakeMemory::reclaim() {
  std::lock_guard lock(mutex_);
  while (!tagged_.empty() && all_done(tagged_.front().last)) {
    const Tagged& block = tagged_.front();
    // From here on not even the device may access it.
    detail::poison(view(block.data), Arena::block_size(block.bytes));
    arena_->deallocate(block.data, block.bytes);
    tagged_.pop_front();
  }
}

void FakeMemory::drop() noexcept {
  if (holders_.fetch_sub(1, std::memory_order_acq_rel) == 1) delete this;
}

}  // namespace troupe
