// Loops over several devices: whatever order their messages come in, they compute what they compute
// on one.
#include <doctest/doctest.h>

#include <algorithm>
#include <random>

#include "tests/protocol/spread_step.hpp"

using namespace troupe;
using namespace troupe::test::loops;

namespace {

using Action = SpreadStep::Action;

void check_orders(const Make& make, Random& random, int rounds) {
  SpreadStep spread = spread_over(make, kSpread);
  CHECK(spread.size() >= 2);
  check_orders(spread, on_one(make), random, rounds);
}

// Those examples whose names begin so.
void check_examples(std::string_view name, int rounds) {
  const auto seed = std::uint64_t(std::random_device{}());
  CAPTURE(seed);
  Random random(seed);
  for (const LoopExample& example : loop_examples()) {
    const std::string of = example.name;
    CAPTURE(of);
    if (of.starts_with(name)) check_orders(example.make, random, rounds);
  }
}

}  // namespace

TEST_CASE("a loop over several devices computes what it computes on one, in any order") {
  check_examples("", 50);
}

TEST_CASE("a loop over two devices that hands values back and forth") {
  check_examples("alternating", 100);
}
TEST_CASE("loops over two devices nest") { check_examples("nest", 100); }
TEST_CASE("a branch in a loop over two devices") { check_examples("branches", 100); }
TEST_CASE("a loop whose condition is on another device") { check_examples("a condition", 100); }
TEST_CASE("a loop over two devices on a branch that is not taken") { check_examples("dead", 100); }
TEST_CASE("the gradient of a loop over two devices, twice") { check_examples("slope", 100); }

TEST_CASE("a loop gives the same for every window") {
  Random random(11);
  for (const auto& loop : {alternating, pipeline, nest}) {
    const Outcome expected = on_one([&](Graph& g, const Devices& d) { return loop(g, d, 10); });
    for (std::int64_t window : {1, 2, 3, 10, 1024}) {
      SpreadStep spread =
          spread_over([&](Graph& g, const Devices& d) { return loop(g, d, window); }, kSpread);
      for (int round = 0; round < 20; ++round) check_same(spread.run(at_random(random)), expected);
    }
  }
  Graph g;
  for (std::int64_t window : {0, -1, 1025})
    CHECK_THROWS_WITH_AS(alternating(g, kSpread, window), doctest::Contains("window"), Error);
}

TEST_CASE("an iteration beyond the window waits until an earlier one is over") {
  for (std::int64_t window : {1, 2, 5, 10}) {
    CAPTURE(window);
    SpreadStep spread =
        spread_over([&](Graph& g, const Devices& d) { return pipeline(g, d, window); }, kSpread);
    std::size_t most = 0;
    for (std::uint32_t first = 0; first < spread.size(); ++first) {
      spread.run(
          last_where([first](const Action& a) { return a.partition == first && a.burst(); }));
      most = std::max(most, spread.most_of_a_channel());
      spread.run(last_where([first](const Action& a) { return a.partition == first; }));
      most = std::max(most, spread.most_of_a_channel());
    }
    CHECK(most <= std::size_t(window));
    CHECK(most + 1 >= std::size_t(window));  // and no more than that is forbidden
  }
}

TEST_CASE("a part of a loop on a device of its own with nothing but effects ends with it") {
  const Make make = [](Graph& g, const Devices& d) {
    Output last = while_loop(
        constant(g, 0), [&](Output i) { return i < 9; },
        [&](Output i) {
          on(g, d[1], [&] { return assert_(i < 9, {.message = "too far"}); });
          return i + 1;
        });
    return std::vector<Output>{last};
  };
  Random random(5);
  check_orders(make, random, 50);
}

TEST_CASE("1,000 random orders of larger loops each, as they are written [slow]") {
  check_examples("", 1000);
}
