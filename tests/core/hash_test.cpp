#include "core/hash.hpp"

#include <doctest/doctest.h>

#include <bit>
#include <set>

#include "core/ids.hpp"

using namespace troupe;

TEST_CASE("philox gives the published answers") {
  // Known-answer vectors of philox4x32-10 (Random123).
  CHECK(philox(0, {0, 0, 0, 0}) == PhiloxBlock{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8});
  CHECK(philox(~std::uint64_t{0}, {0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff}) ==
        PhiloxBlock{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd});
  CHECK(philox(0x299f31d0a4093822, {0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}) ==
        PhiloxBlock{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1});
}

TEST_CASE("hashes keep their bits for ever") {
  // splitmix64's first output for seed 0, and FNV-1a of "" and "a" sent through the same mix.
  CHECK(mix64(0) == 0xe220a8397b1dcdaf);
  CHECK(hash_text("") == mix64(0xcbf29ce484222325));
  CHECK(hash_text("a") == mix64(0xaf63dc4c8601ec8c));
  CHECK(hash_text("a", 1) != hash_text("a", 2));
  CHECK(hash_text(std::string_view("a\0", 2)) != hash_text("a"));
  CHECK(hash_combine(1, 2) != hash_combine(2, 1));
}

TEST_CASE("one flipped bit changes about half of a hash") {
  int changed = 0;
  for (int bit = 0; bit < 64; ++bit)
    changed += std::popcount(mix64(12345) ^ mix64(12345 ^ std::uint64_t{1} << bit));
  CHECK(changed > 64 * 28);
  CHECK(changed < 64 * 36);
}

TEST_CASE("the generator repeats itself for a seed and stays within its range") {
  Random a(7), b(7), c(8);
  for (int i = 0; i < 100; ++i) CHECK(a() == b());
  CHECK(a() != c());
  std::set<std::uint64_t> seen;
  for (int i = 0; i < 1000; ++i) {
    auto n = a.below(10);
    CHECK(n < 10);
    seen.insert(n);
    double u = a.uniform();
    CHECK(u >= 0.0);
    CHECK(u < 1.0);
  }
  CHECK(seen.size() == 10);
  CHECK(a.below(1) == 0);
}

TEST_CASE("attempts order by view first") {
  CHECK(AttemptId{1, 9} < AttemptId{2, 0});
  CHECK(AttemptId{2, 3}.text() == "2.3");
  CHECK(std::hash<RunId>{}({1, 2}) != std::hash<RunId>{}({2, 1}));
}
