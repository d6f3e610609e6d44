#include "core/buffer.hpp"

#include <sys/mman.h>

#include <cstdlib>
#include <new>
#include <string>

namespace troupe {
namespace {

// The C library keeps small pieces of memory that are free at hand, but for aligned ones looks
// elsewhere, several times as long. So small ones are aligned here: the byte before one says how
// far behind the library's it begins.
constexpr std::size_t kMostSmall = 512;
static_assert(kBufferAlignment < 256);

// Large ones are given back to the system when they are free, and each page of a new one costs a
// fault: huge pages are 512 times fewer.
constexpr std::size_t kHugePage = std::size_t{2} << 20, kLarge = 4 * kHugePage;

void* in_huge_pages(std::size_t bytes) {
  void* const memory = std::aligned_alloc(kHugePage, bytes);
  // Of whole pages alone. Only advice, so failure is no error.
  if (memory != nullptr) madvise(memory, bytes / kHugePage * kHugePage, MADV_HUGEPAGE);
  return memory;
}

class HeapAllocator final : public Allocator {
 public:
  void* allocate(std::size_t bytes) override {
    // Beyond this, rounding up to the alignment may wrap around in the C library.
    if (bytes > std::size_t{1} << 62) return nullptr;
    const std::size_t whole = (bytes / kBufferAlignment + 1) * kBufferAlignment;
    if (bytes >= kLarge) return in_huge_pages(whole);
    if (bytes > kMostSmall) return std::aligned_alloc(kBufferAlignment, whole);
    auto* memory = static_cast<unsigned char*>(std::malloc(whole + kBufferAlignment));
    if (memory == nullptr) return nullptr;
    const std::size_t behind =
        kBufferAlignment - reinterpret_cast<std::uintptr_t>(memory) % kBufferAlignment;
    memory[behind - 1] = static_cast<unsigned char>(behind);
    return memory + behind;
  }
  void deallocate(void* data, std::size_t bytes) noexcept override {
    if (data == nullptr) return;
    auto* memory = static_cast<unsigned char*>(data);
    std::free(bytes <= kMostSmall ? memory - memory[-1] : memory);
  }
};

// Small ones, of which a step makes many, have their count in front of their bytes: one piece of
// memory instead of two. Not those of whose size the count would make another size class.
constexpr std::size_t kMostTogether = 512 - kBufferAlignment;

}  // namespace

Allocator& heap_allocator() {
  // Never destroyed: buffers in other static objects may outlive any order we could choose.
  static auto* heap = new HeapAllocator;
  return *heap;
}

Expected<Buffer> Buffer::allocate(Allocator& allocator, std::size_t bytes) {
  static_assert(sizeof(Block) <= kBufferAlignment);
  const bool together = bytes <= kMostTogether && allocator.space() == MemorySpace::host;
  void* data = allocator.allocate(together ? bytes + kBufferAlignment : bytes);
  Block* block = !data ? nullptr : together ? new (data) Block : new (std::nothrow) Block;
  if (!block) {
    if (data) allocator.deallocate(data, bytes);
    return resource_exhausted("no memory for " + std::to_string(bytes) + " bytes");
  }
  block->space = allocator.space();
  block->together = together;
  block->data = together ? static_cast<char*>(data) + kBufferAlignment : data;
  block->size = bytes;
  block->allocator = &allocator;
  return Buffer(block);
}

Buffer Buffer::wrap(void* data, std::size_t bytes, MemorySpace space, void (*release)(void*),
                    void* context) {
  Buffer buffer = wrap_own(data, bytes, space, release, context);
  buffer.block_->foreign = true;
  return buffer;
}

Buffer Buffer::wrap_own(void* data, std::size_t bytes, MemorySpace space, void (*release)(void*),
                        void* context) {
  auto* block = new Block;
  block->space = space;
  block->data = data;
  block->size = bytes;
  block->release = release;
  block->context = context;
  return Buffer(block);
}

Buffer Buffer::hand_over(void* data, std::size_t bytes, Allocator& allocator) {
  auto* block = new Block;
  block->space = allocator.space();
  block->data = data;
  block->size = bytes;
  block->allocator = &allocator;
  return Buffer(block);
}

void Buffer::release(Block* block) noexcept {
  if (block->destroy) block->destroy(block->data, block->size);
  if (block->together) {
    Allocator* allocator = block->allocator;
    const std::size_t size = block->size;
    block->~Block();
    return allocator->deallocate(block, size + kBufferAlignment);
  }
  if (block->allocator) block->allocator->deallocate(block->data, block->size);
  if (block->release) block->release(block->context);
  delete block;
}

}  // namespace troupe
