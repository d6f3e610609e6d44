// Tells the address sanitizer which recycled memory is free; does nothing in other builds. Without
// it a use after free of a tensor would not be found, since its memory never returns to the heap.
#pragma once

#include <cstddef>

#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define TROUPE_POISON 1
#endif
#elif defined(__SANITIZE_ADDRESS__)
#define TROUPE_POISON 1
#endif

extern "C" {
void __asan_poison_memory_region(const volatile void* data, std::size_t bytes);
void __asan_unpoison_memory_region(const volatile void* data, std::size_t bytes);
}

namespace troupe::detail {

inline void poison([[maybe_unused]] void* data, [[maybe_unused]] std::size_t bytes) {
#ifdef TROUPE_POISON
  __asan_poison_memory_region(data, bytes);
#endif
}
inline void unpoison([[maybe_unused]] void* data, [[maybe_unused]] std::size_t bytes) {
#ifdef TROUPE_POISON
  __asan_unpoison_memory_region(data, bytes);
#endif
}

}  // namespace troupe::detail
