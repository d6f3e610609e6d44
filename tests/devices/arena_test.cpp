#include "devices/arena.hpp"

#include <doctest/doctest.h>

#include <cstring>
#include <random>
#include <thread>
#include <vector>

#include "core/tensor.hpp"

using namespace troupe;

TEST_CASE("blocks are aligned, recycled and counted") {
  ArenaPtr arena = make_arena();
  for (std::size_t bytes : {0u, 1u, 64u, 65u, 512u, 513u, 5000u, 131072u, 131073u, 5000000u}) {
    CAPTURE(bytes);
    void* a = arena->allocate(bytes);
    void* b = arena->allocate(bytes);
    REQUIRE(a);
    REQUIRE(b);
    CHECK(a != b);
    CHECK(reinterpret_cast<std::uintptr_t>(a) % kBufferAlignment == 0);
    std::memset(a, 1, bytes);
    std::memset(b, 2, bytes);
    CHECK(arena->bytes_in_use() == 2 * Arena::block_size(bytes));
    const std::size_t held = arena->bytes_held();
    arena->deallocate(a, bytes);
    CHECK(arena->allocate(bytes) == a);
    arena->deallocate(a, bytes);
    arena->deallocate(b, bytes);
    CHECK(arena->bytes_in_use() == 0);
    CHECK(arena->bytes_held() == held);
  }
}

TEST_CASE("the block of a size is the next of eight per doubling") {
  CHECK(Arena::block_size(0) == 64);
  CHECK(Arena::block_size(65) == 128);
  CHECK(Arena::block_size(512) == 512);
  CHECK(Arena::block_size(513) == 576);
  CHECK(Arena::block_size(1024) == 1024);
  CHECK(Arena::block_size(1025) == 1152);
  std::size_t last = 0;
  for (std::size_t bytes = 1; bytes < 1 << 20; bytes += 61) {
    const std::size_t size = Arena::block_size(bytes);
    REQUIRE(size >= bytes);
    REQUIRE(size >= last);
    REQUIRE(size % 64 == 0);
    if (bytes > 512) REQUIRE(size - bytes <= bytes / 8);
    REQUIRE(Arena::block_size(size) == size);
    last = size;
  }
}

TEST_CASE("past the cap there is no memory, and room again after a free") {
  ArenaPtr arena = make_arena(1 << 20);
  void* a = arena->allocate(1 << 19);
  void* b = arena->allocate(1 << 19);
  REQUIRE(a);
  REQUIRE(b);
  CHECK(arena->allocate(1) == nullptr);
  CHECK(arena->bytes_in_use() == 1 << 20);
  CHECK_FALSE(Tensor::make(DType::f32, Shape{10}, *arena).ok());
  arena->deallocate(a, 1 << 19);
  void* c = arena->allocate(300'000);
  CHECK(c != nullptr);
  arena->deallocate(c, 300'000);
  arena->deallocate(b, 1 << 19);
  CHECK(arena->allocate(~std::size_t{0}) == nullptr);
  CHECK(arena->allocate(std::size_t{1} << 62) == nullptr);
  CHECK(arena->bytes_in_use() == 0);
}

TEST_CASE("the peak is the most that was in use since it was reset") {
  ArenaPtr arena = make_arena();
  void* a = arena->allocate(1024);
  void* b = arena->allocate(1024);
  arena->deallocate(a, 1024);
  CHECK(arena->peak_bytes() == 2048);
  arena->reset_peak();
  CHECK(arena->peak_bytes() == 1024);
  arena->deallocate(b, 1024);
  CHECK(arena->peak_bytes() == 1024);
}

TEST_CASE("a large block serves a request that fits it well, and trim gives it back") {
  ArenaPtr arena = make_arena();
  void* big = arena->allocate(8 << 20);
  void* mid = arena->allocate(3 << 20);
  arena->deallocate(big, 8 << 20);
  arena->deallocate(mid, 3 << 20);
  const std::size_t held = arena->bytes_held();
  CHECK(arena->allocate((3 << 20) - 400'000) == mid);
  void* fresh = arena->allocate(3 << 20);  // not the 8 MiB: it is kept for those who need it
  CHECK(fresh != big);
  CHECK(arena->bytes_held() == held + (3 << 20));
  arena->trim();
  CHECK(arena->bytes_held() == 6 << 20);
  arena->deallocate(mid, (3 << 20) - 400'000);
  arena->deallocate(fresh, 3 << 20);
  arena->trim(3 << 20);
  CHECK(arena->bytes_held() == 3 << 20);
}

TEST_CASE("of large blocks of one size the one freed last is used first") {
  ArenaPtr arena = make_arena();
  constexpr std::size_t kBytes = 4 << 20;
  std::vector<void*> blocks;
  for (int i = 0; i < 4; ++i) blocks.push_back(arena->allocate(kBytes));
  // Memory that is only reserved costs nothing: it does not take the place of what was in use.
  for (void* block : blocks) arena->deallocate(block, kBytes);
  for (int round = 0; round < 10; ++round) {
    void* again = arena->allocate(kBytes);
    CHECK(again == blocks.back());
    arena->deallocate(again, kBytes);
  }
  CHECK(arena->bytes_held() == 4 * kBytes);
}

TEST_CASE("a tensor may outlive the owner of its arena") {
  ArenaPtr arena = make_arena();
  Tensor small = Tensor::make(DType::f32, Shape{3}, *arena).value();
  Tensor large = Tensor::make(DType::f32, Shape{1 << 20}, *arena).value();
  small.mutable_data<float>()[2] = 5;
  large.mutable_data<float>()[(1 << 20) - 1] = 7;
  arena.reset();
  CHECK(small.data<float>()[2] == 5);
  CHECK(large.data<float>()[(1 << 20) - 1] == 7);
}

TEST_CASE("threads that allocate and free each other's blocks never share one") {
  const unsigned seed = 11;
  MESSAGE("seed ", seed);
  ArenaPtr arena = make_arena();
  constexpr int kThreads = 4, kRounds = 4000;
  struct Block {
    std::uint64_t* data;
    std::size_t bytes;
    std::uint64_t mark;
  };
  std::mutex mutex;
  std::vector<Block> shared;
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t)
    threads.emplace_back([&, t] {
      std::mt19937 random(seed + unsigned(t));
      for (int i = 0; i < kRounds; ++i) {
        const std::size_t bytes = 8 + random() % (random() % 50 == 0 ? 400'000 : 3000);
        Block mine{static_cast<std::uint64_t*>(arena->allocate(bytes)), bytes, random()};
        *mine.data = mine.mark;
        {
          std::lock_guard lock(mutex);
          shared.push_back(mine);
          if (shared.size() < 100) continue;
          std::swap(shared[random() % shared.size()], shared.back());
          mine = shared.back();
          shared.pop_back();
        }
        if (*mine.data != mine.mark) ++wrong;
        arena->deallocate(mine.data, mine.bytes);
      }
    });
  for (auto& thread : threads) thread.join();
  CHECK(wrong == 0);
  for (Block& b : shared) {
    CHECK(*b.data == b.mark);
    arena->deallocate(b.data, b.bytes);
  }
  CHECK(arena->bytes_in_use() == 0);
}
