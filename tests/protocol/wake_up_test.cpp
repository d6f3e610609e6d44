#include "actors/wake_up.hpp"

#include <doctest/doctest.h>

#include <set>

#include "core/hash.hpp"

using namespace troupe;
using namespace std::chrono_literals;

TEST_CASE("an earlier wake-up gets a timer of its own, a later one none") {
  WakeUp wake;
  CHECK(wake.want(50ms, 0ms) == 50ms);
  CHECK(wake.want(80ms, 1ms) == std::nullopt);
  CHECK(wake.want(10ms, 2ms) == 8ms);
  CHECK(wake.under_way() == 2);
  CHECK(wake.fired(10ms));
  CHECK(wake.want(80ms, 10ms) == std::nullopt);  // the one of 50 ms is under way
  CHECK_FALSE(wake.fired(50ms));
  CHECK(wake.want(80ms, 50ms) == 30ms);
  CHECK(wake.fired(80ms));
  CHECK(wake.want(kNever, 80ms) == std::nullopt);
  CHECK(wake.under_way() == 0);
}

TEST_CASE("a timer that fires in vain sets no other while one is under way") {
  WakeUp wake;
  CHECK(wake.want(50ms, 0ms) == 50ms);
  CHECK(wake.want(10ms, 0ms) == 10ms);
  CHECK(wake.want(kNever, 1ms) == std::nullopt);
  CHECK_FALSE(wake.fired(10ms));
  CHECK(wake.want(kNever, 10ms) == std::nullopt);
  CHECK(wake.under_way() == 1);
}

TEST_CASE("what is overdue is due at once") {
  WakeUp wake;
  CHECK(wake.want(5ms, 7ms) == 0ms);
  CHECK(wake.fired(7ms));
}

// A clock on which timers fire in their order.
TEST_CASE("few timers are under way, and none is late, whatever is wanted when") {
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    CAPTURE(seed);
    Random random(seed);
    WakeUp wake;
    std::multiset<Instant> timers;
    Instant now{}, wanted = kNever;
    bool often_earlier = seed % 2 == 0;
    auto want = [&](Instant at) {
      wanted = at;
      if (auto runs = wake.want(at, now)) timers.insert(now + *runs);
      REQUIRE(timers.size() == wake.under_way());
      REQUIRE(timers.size() <= WakeUp::kMost);
    };
    for (int i = 0; i < 500; ++i) {
      const Instant pause(random.below(std::uint64_t{1} << random.below(34)));
      const Instant until = now + pause;
      while (!timers.empty() && *timers.begin() <= until) {
        now = std::max(now, *timers.begin());
        timers.erase(timers.begin());
        const bool due = wake.fired(now);
        REQUIRE(due == (wanted <= now));
        want(due ? kNever : wanted);
      }
      now = until;
      // Nobody who is not served yet has waited longer than that.
      REQUIRE((wanted == kNever || now <= wanted + WakeUp::kLate));
      if (often_earlier && wanted != kNever && wanted > now && random.below(4) != 0)
        want(now + (wanted - now) / 8 * std::int64_t(random.below(8)));
      else if (random.below(8) == 0)
        want(kNever);
      else
        want(now + Instant(random.below(std::uint64_t{1} << random.below(40))));
    }
  }
}
