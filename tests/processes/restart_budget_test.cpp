#include "actors/supervision/restart_budget.hpp"

#include <doctest/doctest.h>

using namespace troupe;
using namespace std::chrono_literals;

TEST_CASE("restarts wait longer each time and run out") {
  RestartBudget budget({}, 1);
  Instant now = 0ms, last = 0ms;
  for (int i = 0; i < 10; ++i) {
    auto delay = budget.died(now);
    REQUIRE(delay.has_value());
    CHECK(*delay <= 5s);
    CHECK(*delay >= 25ms);
    if (i > 1 && i < 6) CHECK(*delay * 2 >= last);
    last = *delay;
    now += 1s;
  }
  CHECK_FALSE(budget.died(now).has_value());
  CHECK(budget.left(now) == 0);
  CHECK(budget.left(61s) == 2);  // the window moves on
}

TEST_CASE("a restart that was followed by progress does not count") {
  RestartBudget budget({}, 2);
  for (int i = 0; i < 1000; ++i) {
    auto delay = budget.died(1s * i);
    REQUIRE(delay.has_value());
    CHECK(*delay <= 50ms);
    budget.progressed();
  }
}

TEST_CASE("jitter is seeded") {
  RestartBudget a({}, 3), b({}, 3), c({}, 4);
  bool differs = false;
  for (int i = 0; i < 5; ++i) {
    auto x = a.died(0ms), y = b.died(0ms), z = c.died(0ms);
    CHECK(x == y);
    differs |= x != z;
  }
  CHECK(differs);
}
