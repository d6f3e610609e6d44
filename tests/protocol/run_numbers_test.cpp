#include "actors/master/run_numbers.hpp"

#include <doctest/doctest.h>

#include <set>

#include "core/hash.hpp"

using namespace troupe;

TEST_CASE("answers that arrive in order leave nothing to list") {
  RunNumbers numbers(1);
  for (std::uint64_t n = 1; n < 10; ++n) {
    CHECK(numbers.next() == n);
    CHECK(numbers.acknowledged().below == n);
    CHECK(numbers.acknowledged().but.empty());
    numbers.answered(n);
    CHECK(numbers.acknowledged().below == n + 1);
  }
}

TEST_CASE("answers that overtake others are acknowledged one by one") {
  RunNumbers numbers(0);
  for (int i = 0; i < 5; ++i) numbers.next();
  numbers.answered(3);
  numbers.answered(1);
  Acknowledged arrived = numbers.acknowledged();
  CHECK(arrived.below == 4);
  CHECK(arrived.but == std::vector<std::uint64_t>{0, 2});
  CHECK(arrived.covers(1));
  CHECK_FALSE(arrived.covers(2));
  CHECK_FALSE(arrived.covers(4));
}

TEST_CASE("what was acknowledged stays so, in whatever order it is heard") {
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    CAPTURE(seed);
    Random random(seed);
    RunNumbers numbers(0);
    std::set<std::uint64_t> under_way;
    std::vector<Acknowledged> said;
    std::uint64_t begun = 0;
    for (int i = 0; i < 60; ++i) {
      if (under_way.empty() || random.below(2) == 0) {
        under_way.insert(numbers.next());
        ++begun;
      } else {
        auto one = std::next(under_way.begin(), std::ptrdiff_t(random.below(under_way.size())));
        numbers.answered(*one);
        under_way.erase(one);
      }
      said.push_back(numbers.acknowledged());
      REQUIRE(said.back().but.size() <= under_way.size());
    }
    Acknowledged heard;
    for (std::size_t i = 0; i < said.size(); ++i) {
      const Acknowledged& one = said[random.below(said.size())];
      const Acknowledged before = heard;
      heard.merge(one);
      for (std::uint64_t n = 0; n < begun; ++n)
        REQUIRE(heard.covers(n) == (before.covers(n) || one.covers(n)));
    }
    heard.merge(said.back());
    for (std::uint64_t n = 0; n < begun; ++n) REQUIRE(heard.covers(n) == !under_way.contains(n));
  }
}
