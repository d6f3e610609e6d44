#include "actors/protocol/budgets.hpp"

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

TEST_CASE("a sender stops at its window and parks the lowest iteration first") {
  SendCredits<int> credits(2);
  for (int i : {4, 1, 3, 2}) credits.offer({i}, i);
  CHECK(credits.next()->second == 1);
  CHECK(credits.next()->second == 2);
  CHECK_FALSE(credits.next().has_value());
  CHECK(credits.parked() == 2);
  credits.consumed(1);
  credits.consumed(1);  // repeated
  CHECK(credits.next()->second == 3);
  CHECK_FALSE(credits.next().has_value());
  credits.consumed(0);   // overtaken
  credits.consumed(99);  // nonsense
  CHECK_FALSE(credits.next().has_value());
  credits.consumed(3);
  CHECK(credits.next()->second == 4);
}

TEST_CASE("a receiver refuses what it never granted") {
  ReceiveCredits credits(2);
  CHECK(credits.accept());
  CHECK(credits.accept());
  CHECK_FALSE(credits.accept());
  CHECK(credits.consume() == 1);
  CHECK(credits.accept());
  CHECK(credits.consume() == 2);
  CHECK(credits.consume() == 3);
  CHECK(credits.consume() == 3);  // nothing more was received
}

TEST_CASE("the window of a channel grows with the frames around it, up to a cap") {
  CHECK(channel_window({}) == 1);
  CHECK(channel_window({10}) == 11);
  CHECK(channel_window({10, 2}) == 33);
  CHECK(channel_window({4000000000u, 4000000000u, 4000000000u}, 1000) == 1000);
}
