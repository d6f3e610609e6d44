#include <doctest/doctest.h>

#include <optional>

#include "actors/net/pool.hpp"

using namespace troupe;

TEST_CASE("a pool hands the same memory out again") {
  BufferPool pool(1u << 20);
  Buffer a = pool.take(1000).value();
  void* data = a.data();
  CHECK(a.size() == 1000);
  CHECK(reinterpret_cast<std::uintptr_t>(data) % kBufferAlignment == 0);
  CHECK(pool.live_bytes() >= 1000);
  a = {};
  CHECK(pool.live_bytes() == 0);
  CHECK(pool.kept_bytes() >= 1000);
  CHECK(pool.take(900).value().data() == data);
}

TEST_CASE("a pool keeps no more than it was told to") {
  BufferPool pool(10'000);
  { Buffer a = pool.take(20'000).value(); }
  CHECK(pool.kept_bytes() == 0);
}

TEST_CASE("a buffer may outlive its pool") {
  std::optional<BufferPool> pool(std::in_place, 1u << 20);
  Buffer a = pool->take(100).value();
  pool.reset();
  static_cast<char*>(a.data())[99] = 1;
}

TEST_CASE("an absurd size is a status") {
  BufferPool pool(0);
  CHECK(pool.take(~std::uint64_t{0}).status().code() == Code::resource_exhausted);
  CHECK(pool.take(std::uint64_t{1} << 61).status().code() == Code::resource_exhausted);
}
