#include "tests/graph/allocated.hpp"

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdlib>
#include <new>

namespace {

// Threads count beside each other: one counter for all of them would cost what it measures.
struct alignas(64) Counter {
  std::atomic<std::uint64_t> bytes{0};
};
std::array<Counter, 16> counters;
std::atomic<unsigned> threads{0};
std::atomic<std::uint64_t> largest{0};

Counter& counter() {
  thread_local Counter* mine = nullptr;
  if (mine == nullptr) mine = &counters[threads.fetch_add(1) % counters.size()];
  return *mine;
}

void* take(std::size_t size, std::size_t alignment) {
  counter().bytes.fetch_add(size, std::memory_order_relaxed);
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

std::uint64_t troupe::test::allocated_bytes() {
  std::uint64_t all = 0;
  for (const Counter& c : counters) all += c.bytes.load(std::memory_order_relaxed);
  return all;
}

std::uint64_t troupe::test::take_largest_block() {
  return largest.exchange(0, std::memory_order_relaxed);
}
