#include "troupe/core/buffer.hpp"

#include <new>
#include <string>

namespace troupe {
namespace {

class HeapAllocator final : public Allocator {
 public:
  void* allocate(std::size_t bytes) override {
    // Beyond this, rounding up to the alignment may wrap around in the C library.
    if (bytes > std::size_t{1} << 62) return nullptr;
    return ::operator new(bytes, std::align_val_t(kBufferAlignment), std::nothrow);
  }
  void deallocate(void* data, std::size_t) noexcept override {
    ::operator delete(data, std::align_val_t(kBufferAlignment));
  }
};

}  // namespace

Allocator& heap_allocator() {
  // Never destroyed: buffers in other static objects may outlive any order we could choose.
  static auto* heap = new HeapAllocator;
  return *heap;
}

Expected<Buffer> Buffer::allocate(Allocator& allocator, std::size_t bytes) {
  void* data = allocator.allocate(bytes);
  Block* block = data ? new (std::nothrow) Block : nullptr;
  if (!block) {
    if (data) allocator.deallocate(data, bytes);
    return resource_exhausted("no memory for " + std::to_string(bytes) + " bytes");
  }
  block->space = allocator.space();
  block->data = data;
  block->size = bytes;
  block->allocator = &allocator;
  return Buffer(block);
}

Buffer Buffer::wrap(void* data, std::size_t bytes, MemorySpace space, void (*release)(void*),
                    void* context) {
  auto* block = new Block;
  block->space = space;
  block->data = data;
  block->size = bytes;
  block->release = release;
  block->context = context;
  return Buffer(block);
}

void Buffer::release(Block* block) noexcept {
  if (block->destroy) block->destroy(block->data, block->size);
  if (block->allocator) block->allocator->deallocate(block->data, block->size);
  if (block->release) block->release(block->context);
  delete block;
}

}  // namespace troupe
