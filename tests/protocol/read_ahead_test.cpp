#include "actors/resources/read_ahead.hpp"

#include <doctest/doctest.h>

#include <set>
#include <vector>

#include "core/hash.hpp"

using namespace troupe;

namespace {

// Everything that is to be made while `held` wait.
std::vector<std::uint64_t> made(ReadAhead& ahead, std::size_t held = 0) {
  std::vector<std::uint64_t> all;
  while (auto next = ahead.next(held + all.size())) {
    all.push_back(*next);
    ahead.made();
  }
  return all;
}

using ReadElements = std::vector<std::uint64_t>;

}  // namespace

TEST_CASE("a replica's next elements are made ahead, and nobody else's") {
  ReadAhead ahead(3);
  CHECK(made(ahead).empty());  // whose, nobody knows
  CHECK_FALSE(ahead.asked(1, 1, 4));
  CHECK(made(ahead) == ReadElements{5, 9, 13});
  CHECK_FALSE(ahead.asked(1, 5, 4));
  CHECK(made(ahead, 2) == ReadElements{17});
}

TEST_CASE("replicas of one process take turns") {
  ReadAhead ahead(2);
  ahead.asked(0, 0, 2);
  ahead.asked(1, 1, 2);
  CHECK(made(ahead) == ReadElements{2, 3, 4, 5});
}

TEST_CASE("replicas of other processes come to no element of this one's") {
  ReadAhead ahead(0);
  const auto awaited = [&](std::uint64_t begin) {
    ReadElements all;
    for (std::uint64_t position = begin; position < begin + 4; ++position)
      if (ahead.awaited(position)) all.push_back(position);
    return all;
  };
  ahead.asked(1, 1, 4);
  CHECK(awaited(0) == ReadElements{0, 1, 2, 3});  // others may follow
  ahead.asked(3, 3, 4);
  CHECK(awaited(4) == ReadElements{4, 5, 6, 7});
  ahead.asked(3, 7, 4);
  CHECK(awaited(4) == ReadElements{5, 7});
  ahead.asked(1, 5, 4);
  CHECK(awaited(8) == ReadElements{9, 11});
  ahead.asked(1, 10, 4);  // a step of one replica has taken an element
  CHECK(awaited(12) == ReadElements{14, 15});
  ahead.asked(3, 12, 4);
  CHECK(awaited(12) == ReadElements{12, 14});
}

TEST_CASE("an element that is asked for again, or before it is made, changes nothing") {
  ReadAhead ahead(2);
  ahead.asked(0, 0, 1);
  CHECK_FALSE(ahead.asked(0, 1, 1));  // not made yet
  CHECK(made(ahead) == ReadElements{2, 3});
  CHECK_FALSE(ahead.asked(0, 1, 1));  // a redo
  CHECK(made(ahead, 2).empty());
}

TEST_CASE("who goes back or far ahead, or has other replicas beside it, begins anew") {
  ReadAhead ahead(2);
  ahead.asked(0, 100, 1);
  made(ahead);
  CHECK(ahead.asked(0, 0, 1));
  CHECK(made(ahead) == ReadElements{1, 2});
  CHECK(ahead.asked(0, 50, 1));
  CHECK(made(ahead) == ReadElements{51, 52});
  CHECK(ahead.asked(0, 51, 2));
  CHECK(made(ahead) == ReadElements{53, 55});
}

TEST_CASE("a dataset that nothing is made of ahead") {
  ReadAhead ahead(0);
  for (std::uint64_t i = 0; i < 5; ++i) {
    CHECK_FALSE(ahead.asked(0, i, 1));
    CHECK(made(ahead).empty());
  }
}

TEST_CASE("runs in order find made what was made, random turns") {
  constexpr std::uint64_t kSeed = 20;
  Random random(kSeed);
  INFO("seed " << kSeed);
  for (int round = 0; round < 200; ++round) {
    const std::uint64_t most = 1 + random.below(6), replicas = 1 + random.below(4);
    ReadAhead ahead(most);
    std::set<std::uint64_t> held;
    std::uint64_t missed = 0;
    for (std::uint64_t run = 0; run < 50; ++run) {
      for (std::uint64_t r = 0; r < replicas; ++r) {
        const std::uint64_t position = run * replicas + r;
        CHECK_FALSE(ahead.asked(std::uint32_t(r), position, replicas));
        missed += 1 - held.erase(position);
      }
      CHECK(held.size() <= most * replicas);
      // Some of what may be made is made, before the next run comes.
      for (auto turns = 1 + random.below(most * replicas); turns > 0; --turns)
        if (auto next = ahead.next(held.size())) {
          CHECK(held.insert(*next).second);
          ahead.made();
        }
    }
    CHECK(missed < 50 * replicas);
  }
}
