#include "tests/hostile/largest_block.hpp"

#include <atomic>
#include <cstddef>
#include <cstdlib>
#include <new>

namespace {

std::atomic<std::uint64_t> largest{0};

void* take(std::size_t size, std::size_t alignment) {
  if (size > largest.load(std::memory_order_relaxed))
    largest.store(size, std::memory_order_relaxed);
  if (alignment <= alignof(std::max_align_t)) return std::malloc(size == 0 ? 1 : size);
  const std::size_t rounded = (size + alignment - 1) / alignment * alignment;
  return std::aligned_alloc(alignment, rounded == 0 ? alignment : rounded);
}

void* taken(void* memory) { return memory ? memory : throw std::bad_alloc(); }

}  // namespace

void* operator new(std::size_t size) { return taken(take(size, alignof(std::max_align_t))); }
void* operator new(std::size_t size, std::align_val_t alignment) {
  return taken(take(size, std::size_t(alignment)));
}
void* operator new(std::size_t size, const std::nothrow_t&) noexcept {
  return take(size, alignof(std::max_align_t));
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
void operator delete(void* memory, std::align_val_t) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t, std::align_val_t) noexcept { std::free(memory); }

std::uint64_t troupe::test::take_largest_block() {
  return largest.exchange(0, std::memory_order_relaxed);
}
