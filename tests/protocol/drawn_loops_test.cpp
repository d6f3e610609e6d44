// Random orders of 200 nests of loops, each drawn from its number.
#include "tests/protocol/drawn_loops.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <random>

using namespace troupe;
using namespace troupe::test::loops;

namespace {

constexpr std::uint64_t kLoops = 200;

// So many random orders of each, beside uneven ones.
std::map<std::string, int> check_drawn(std::uint64_t loops, int rounds) {
  const auto seed = std::uint64_t(std::random_device{}());
  CAPTURE(seed);
  Random random(seed);
  std::map<std::string, int> has;
  for (std::uint64_t number = 0; number < loops; ++number) {
    CAPTURE(number);
    const DrawnLoop drawn = drawn_loop(number);
    const Outcome expected = on_one(drawn.make, drawn.world);
    SpreadStep spread = spread_over(drawn.make, kSpread, drawn.world);
    CHECK(spread.size() >= 2);
    check_orders(spread, expected, random, rounds);
    for (const std::string& what : drawn.has) ++has[what];
    for (const auto& [what, effects] : expected.effects)
      if (!what.starts_with("print loop")) {
        ++has["it does something"];
        break;
      }
    std::size_t parts = 0;
    for (const SpreadStep::Loop& loop : spread.loops()) parts = std::max(parts, loop.parts);
    if (parts > 0) ++has["a loop of " + std::to_string(parts) + " parts"];
    has["no iteration"] += expected.effects.count("print loop 0") == 0;
  }
  return has;
}

}  // namespace

TEST_CASE("some random orders of drawn loops end alike") {
  const std::map<std::string, int> has = check_drawn(kLoops / 2, 2);
  // What was drawn is not of one kind.
  for (const char* what :
       {"2 devices", "3 devices", "1 frame", "2 frames", "3 frames", "window 1", "a branch",
        "a loop on a branch", "a function that calls itself", "a variable says how often",
        "a loop around says how often", "values say how often", "a Print", "a queue is filled",
        "a queue is emptied", "a queue is filled and emptied", "a variable is written",
        "a loop of 2 parts", "a loop of 3 parts"}) {
    CAPTURE(what);
    CHECK(has.count(what) == 1);
    if (has.count(what) == 1) CHECK(has.at(what) >= 10);
  }
  for (const char* what :
       {"no iteration", "the outermost loop is dead", "the outermost loop is on a branch"}) {
    CAPTURE(what);
    CHECK(has.count(what) == 1);
    if (has.count(what) == 1) CHECK(has.at(what) >= 5);
  }
  CHECK(has.at("it does something") >= 50);
}

TEST_CASE("100,000 random orders of larger loops [slow]") {
  const std::map<std::string, int> has = check_drawn(kLoops, int(100'000 / kLoops));
  for (const auto& [what, loops] : has) MESSAGE(what << ": " << loops << " loops");
}
