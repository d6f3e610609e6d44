#include "core/accumulating_clock.hpp"

#include <doctest/doctest.h>

#include "core/hash.hpp"

using namespace troupe;
using namespace std::chrono_literals;

TEST_CASE("a clock that is looked at often shows the time that passed") {
  AccumulatingClock clock;
  CHECK(clock.reading() == 0ms);
  CHECK(clock.at(5h) == 0ms);
  for (std::chrono::milliseconds t = 1h; t <= 1h + 2050ms; t += 50ms) clock.look(t);
  CHECK(clock.reading() == 2050ms);
  CHECK(clock.at(1h + 2060ms) == 2060ms);
  CHECK(clock.at(1h + 2030ms) == 2030ms);
}

TEST_CASE("a pause of whoever looks counts as 100 ms, however long it was") {
  AccumulatingClock clock;
  clock.look(1h);
  clock.look(1h + 30s);
  CHECK(clock.reading() == 100ms);
  clock.look(1h + 30s + 50ms);
  CHECK(clock.reading() == 150ms);
}

TEST_CASE("whoever always looks late still gets ahead") {
  AccumulatingClock clock;
  for (std::chrono::milliseconds t = 1h; t <= 1h + 6s; t += 150ms) clock.look(t);
  CHECK(clock.reading() == 4s);
}

TEST_CASE(
    "a moment between two looks keeps its distance from the first, and is not after the second") {
  AccumulatingClock clock;
  clock.look(1h);
  clock.look(1h + 30s);
  CHECK(clock.at(1h + 10ms) == 10ms);  // before the pause, as far as one can tell
  CHECK(clock.at(1h + 29s) == 100ms);  // after it
  CHECK(clock.at(1h + 30s) == 100ms);
  CHECK(clock.at(1h + 40s) == 200ms);  // a look now would show as much
  CHECK(clock.at(30min) == 0ms);       // long ago
}

TEST_CASE("a clock never goes back, and never ahead of time") {
  const std::uint64_t seed = 1;
  INFO("seed " << seed);
  Random random(seed);
  AccumulatingClock clock;
  std::chrono::milliseconds moment = 1000h;
  std::chrono::nanoseconds real{}, shown{};
  clock.look(moment);
  for (int i = 0; i < 10'000; ++i) {
    auto gap = std::chrono::milliseconds(std::int64_t(random.below(200)));
    auto inside = std::chrono::milliseconds(std::int64_t(random.below(200)));
    const auto promised = clock.at(moment + gap);
    CHECK(clock.at(moment + inside) <= clock.reading() + inside);
    moment += gap;
    real += gap;
    clock.look(moment);
    CHECK(clock.reading() == promised);
    CHECK(clock.reading() >= shown);
    CHECK(clock.at(moment - inside) <= clock.reading());
    shown = clock.reading();
    CHECK(shown <= real);
  }
}
