#include "core/buffer.hpp"

#include <doctest/doctest.h>

#include <atomic>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

using namespace troupe;

namespace {

// Counts what it gave and took, and can be told to have nothing left.
class CountingAllocator : public Allocator {
 public:
  void* allocate(std::size_t bytes) override {
    if (empty) return nullptr;
    ++live;
    asked = bytes;
    return heap_allocator().allocate(bytes);
  }
  void deallocate(void* data, std::size_t bytes) noexcept override {
    --live;
    CHECK(bytes == asked);
    heap_allocator().deallocate(data, bytes);
  }
  std::atomic<int> live{0};
  std::size_t asked = 0;
  bool empty = false;
};

}  // namespace

TEST_CASE("a buffer goes back to its allocator with the last reference") {
  CountingAllocator allocator;
  for (std::size_t bytes : {0, 1, 100, 448, 449, 10'000}) {
    CAPTURE(bytes);
    Buffer a = Buffer::allocate(allocator, bytes).value();
    CHECK(a.size() == bytes);
    CHECK(allocator.asked >= bytes);
    if (bytes > 0) std::memset(a.data(), 1, bytes);
    CHECK(reinterpret_cast<std::uintptr_t>(a.data()) % kBufferAlignment == 0);
    CHECK(a.unique());
    Buffer b = a;
    CHECK(a == b);
    CHECK_FALSE(a.unique());
    Buffer c = std::move(a);
    CHECK_FALSE(bool(a));  // NOLINT: a moved-from buffer is empty, by contract
    CHECK(a.data() == nullptr);
    CHECK(a.size() == 0);
    b = Buffer();
    CHECK(c.unique());
    Buffer& same = c;
    c = same;
    CHECK(c.unique());
    CHECK(allocator.live == 1);
    c = Buffer();
    CHECK(allocator.live == 0);
  }
}

TEST_CASE("memory of every small size is aligned, apart from others, and given back whole") {
  struct Piece {
    unsigned char* data;
    std::size_t bytes;
  };
  std::vector<Piece> pieces;
  for (std::size_t bytes = 0; bytes <= 1200; ++bytes) {
    pieces.push_back({static_cast<unsigned char*>(heap_allocator().allocate(bytes)), bytes});
    REQUIRE(pieces.back().data != nullptr);
    REQUIRE(reinterpret_cast<std::uintptr_t>(pieces.back().data) % kBufferAlignment == 0);
    std::memset(pieces.back().data, int(bytes % 251), bytes);
  }
  for (const Piece& piece : pieces)
    for (std::size_t i = 0; i < piece.bytes; ++i) REQUIRE(piece.data[i] == piece.bytes % 251);
  for (std::size_t i = 0; i < pieces.size(); i += 2)
    heap_allocator().deallocate(pieces[i].data, pieces[i].bytes);
  for (std::size_t i = 1; i < pieces.size(); i += 2)
    heap_allocator().deallocate(pieces[i].data, pieces[i].bytes);
}

TEST_CASE("an empty buffer is a buffer") {
  CountingAllocator allocator;
  Buffer b = Buffer::allocate(allocator, 0).value();
  CHECK(bool(b));
  CHECK(b.size() == 0);
  CHECK(b.unique());
  CHECK_FALSE(Buffer().unique());
}

TEST_CASE("no memory is a status") {
  CountingAllocator allocator;
  allocator.empty = true;
  auto b = Buffer::allocate(allocator, 64);
  REQUIRE_FALSE(b.ok());
  CHECK(b.status().code() == Code::resource_exhausted);
  CHECK_FALSE(Buffer::allocate(heap_allocator(), ~std::size_t{0}).ok());
  CHECK_FALSE(Buffer::allocate(heap_allocator(), std::size_t{1} << 62).ok());
}

TEST_CASE("wrapped memory is released once, with its context") {
  int released = 0;
  char bytes[8] = "abc";
  {
    Buffer a = Buffer::wrap(
        bytes, sizeof bytes, MemorySpace::host, [](void* c) { ++*static_cast<int*>(c); },
        &released);
    CHECK(a.data() == bytes);
    CHECK_FALSE(a.unique());  // its owner may look at it
    Buffer b = a;
    a = Buffer();
    CHECK(released == 0);
  }
  CHECK(released == 1);
  Buffer device = Buffer::wrap(bytes, 8, MemorySpace::device, nullptr, nullptr);
  CHECK(device.space() == MemorySpace::device);
  CHECK(Buffer::wrap_own(bytes, 8, MemorySpace::host, nullptr, nullptr).unique());
}

TEST_CASE("elements are destroyed before their memory goes") {
  static int destroyed;
  destroyed = 0;
  CountingAllocator allocator;
  {
    Buffer b = Buffer::allocate(allocator, 24).value();
    b.on_destroy([](void*, std::size_t bytes) { destroyed += int(bytes); });
    Buffer copy = b;
  }
  CHECK(destroyed == 24);
  CHECK(allocator.live == 0);
}

TEST_CASE("threads share a buffer and the last one frees it") {
  CountingAllocator allocator;
  for (int round = 0; round < 50; ++round) {
    Buffer shared = Buffer::allocate(allocator, 64).value();
    std::memset(shared.data(), round, 64);
    std::atomic<int> wrong{0};
    std::vector<std::thread> threads;
    for (int t = 0; t < 4; ++t)
      threads.emplace_back([mine = shared, round, &wrong]() mutable {
        std::vector<Buffer> copies;
        for (int i = 0; i < 100; ++i) {
          copies.push_back(mine);
          if (static_cast<char*>(copies.back().data())[i % 64] != char(round)) ++wrong;
          if (i % 3 == 0) copies.erase(copies.begin());
        }
        mine = Buffer();
      });
    shared = Buffer();
    for (auto& t : threads) t.join();
    CHECK(wrong == 0);
    CHECK(allocator.live == 0);
  }
}
