#include "devices/chunks.hpp"

#include <doctest/doctest.h>

#include <initializer_list>
#include <random>
#include <vector>

using namespace troupe;

namespace {

// In order, none empty, nothing twice, nothing left out.
void check_covers(const Chunks& chunks, std::int64_t total) {
  std::int64_t next = 0;
  for (std::int64_t i = 0; i < chunks.count; ++i) {
    REQUIRE(chunks[i].begin == next);
    REQUIRE(chunks[i].size() > 0);
    next = chunks[i].end;
  }
  CHECK(next == total);
}

}  // namespace

TEST_CASE("chunks cover their items once, in order") {
  for (std::int64_t n : {0, 1, 7, 8, 9, 63, 64, 65, 4096, 32767, 32768, 32769, 1000003}) {
    CAPTURE(n);
    check_covers(elementwise_chunks(n), n);
    check_covers(row_chunks(n, 10), n);
    check_covers(row_chunks(n, 0), n);
    check_covers(row_chunks(n, 1 << 20), n);
    check_covers(conv_chunks(n), n);
    check_covers(conv_filter_chunks(n, 64, 1024).chunks, n);
    check_covers(conv_filter_chunks(8, n, 5 << 20).chunks, n);
    check_covers(sum_leaves(n), n);
    check_covers(sum_chunks(sum_leaves(n).count), sum_leaves(n).count);
    check_covers(column_sum_leaves(n, 512), n);
    CHECK(column_sum_leaves(n, 512).count <= 64);
    CHECK(conv_filter_chunks(n, 64, 1024).chunks.count <= 8);
  }
}

TEST_CASE("chunks of a matrix product are neither small nor thin") {
  const unsigned seed = 20;
  MESSAGE("seed ", seed);
  std::mt19937 random(seed);
  for (int round = 0; round < 2000; ++round) {
    const std::int64_t m = random() % 3000, n = random() % 3000, k = random() % 3000;
    CAPTURE(m);
    CAPTURE(n);
    CAPTURE(k);
    const GemmChunks g = gemm_chunks(m, n, k);
    if (m == 0 || n == 0) {
      CHECK(g.chunks.count == 0);
      continue;
    }
    check_covers(g.chunks, std::max(m, n));
    CHECK(g.by_rows == (m >= n));
    if (g.chunks.count == 1) continue;
    CHECK(2e-6 * double(m) * double(n) * double(k) / double(g.chunks.count) >= 12);
    for (std::int64_t i = 0; i < g.chunks.count; ++i) {
      REQUIRE(g.chunks[i].size() >= (g.by_rows ? 32 : 128));
      REQUIRE(g.chunks[i].begin % (g.by_rows ? 8 : 16) == 0);
    }
  }
}

TEST_CASE("products too large for 64 bits of FLOP are still cut") {
  const std::int64_t big = std::int64_t{1} << 30;
  CHECK(gemm_chunks(big, big, big).chunks.count == 32);
  CHECK(gemm_chunks(100, 512, 784).chunks.count == 4);  // 80 MFLOP, 512 columns
  CHECK(gemm_chunks(64, 64, 64).chunks.count == 1);
  CHECK(gemm_chunks(100, 10, 0).chunks.count == 1);  // zeros are written too
}

TEST_CASE("heavy filters are cut by channel, light ones by image") {
  CHECK(conv_filter_chunks(64, 512, 5 << 20).by_channels);
  CHECK_FALSE(conv_filter_chunks(64, 512, 4 << 20).by_channels);
  CHECK(conv_filter_chunks(64, 32, 1 << 10).chunks.count == 8);
  CHECK(conv_filter_chunks(256, 32, 1 << 10).chunks[0].size() == 32);
  CHECK(conv_filter_chunks(5, 32, 1 << 10).chunks.count == 1);
}

TEST_CASE("the tree of a sum is fixed, and chunks of leaves are its subtrees") {
  std::vector<std::pair<std::int64_t, std::int64_t>> order;
  tree_sum(5, [&](std::int64_t i, std::int64_t j) { order.emplace_back(i, j); });
  CHECK(order ==
        std::vector<std::pair<std::int64_t, std::int64_t>>{{0, 1}, {2, 3}, {0, 2}, {0, 4}});
  tree_sum(0, [](std::int64_t, std::int64_t) { FAIL("nothing to add"); });
  tree_sum(1, [](std::int64_t, std::int64_t) { FAIL("nothing to add"); });

  // Reducing each chunk's leaves first gives the same bits as the tree over all leaves.
  std::mt19937 random(7);
  for (std::int64_t leaves : {1, 7, 8, 9, 31, 64, 100}) {
    std::vector<float> flat(leaves);
    for (float& x : flat) x = float(random()) * 1e-3f;
    std::vector<float> nested;
    const Chunks chunks = sum_chunks(leaves);
    for (std::int64_t c = 0; c < chunks.count; ++c) {
      std::vector<float> part(flat.begin() + chunks[c].begin, flat.begin() + chunks[c].end);
      tree_sum(chunks[c].size(), [&](std::int64_t i, std::int64_t j) { part[i] += part[j]; });
      nested.push_back(part[0]);
    }
    tree_sum(chunks.count, [&](std::int64_t i, std::int64_t j) { nested[i] += nested[j]; });
    tree_sum(leaves, [&](std::int64_t i, std::int64_t j) { flat[i] += flat[j]; });
    CHECK(nested[0] == flat[0]);
  }
}
