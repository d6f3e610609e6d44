#include "core/clock_offset.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <cstdlib>
#include <limits>

#include "core/hash.hpp"

using namespace troupe;

namespace {

constexpr std::int64_t kMillisecond = 1'000'000;

// Two clocks and the way between them, which takes longer in one direction and is late at random.
struct Line {
  Random random;
  std::int64_t offset;       // theirs - ours at 0
  double drift;              // of theirs
  std::int64_t there, back;  // the least each way takes
  std::int64_t now = 1'000'000'000;

  std::int64_t theirs(std::int64_t t) const { return t + offset + std::int64_t(drift * double(t)); }
  std::int64_t late() { return std::int64_t(-std::log(1 - random.uniform()) * 300'000); }

  void exchange(ClockOffset& clock) {
    const std::int64_t arrived = now + there + late();
    const std::int64_t answered = arrived + std::int64_t(random.below(50 * kMillisecond));
    const std::int64_t received = answered + back + late();
    clock.exchange(now, theirs(arrived), theirs(answered), received);
    now = received + std::int64_t(random.below(50 * kMillisecond));
  }
};

}  // namespace

TEST_CASE("the true offset is within the error of the estimate, which becomes small") {
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    CAPTURE(seed);
    Random draw(seed);
    Line line{Random(mix64(seed)), std::int64_t(draw.below(2'000'000'000)) - 900'000'000,
              (draw.uniform() - 0.5) * 200e-6, 20'000 + std::int64_t(draw.below(60'000)),
              20'000 + std::int64_t(draw.below(60'000))};
    ClockOffset clock;
    for (int i = 0; i < 200; ++i) {
      line.exchange(clock);
      const auto estimate = clock.at(line.now);
      REQUIRE(estimate);
      const std::int64_t truth = line.theirs(line.now) - line.now;
      REQUIRE(std::llabs(estimate->offset_ns - truth) <= estimate->error_ns);
    }
    CHECK(clock.at(line.now)->error_ns < 300'000);
  }
}

TEST_CASE("an exchange without delay is exact, and a slower one does not take its place") {
  ClockOffset clock;
  CHECK_FALSE(clock.at(5));
  clock.exchange(1000, 501'000, 501'500, 1500);
  CHECK(clock.at(1500)->offset_ns == 500'000);
  CHECK(clock.at(1500)->error_ns == 0);
  clock.exchange(2000, 502'000, 502'000, 9000);
  CHECK(clock.at(9000)->offset_ns == 500'000);
}

TEST_CASE("an estimate is worth less the older it is, until a newer one is better") {
  ClockOffset clock;
  clock.exchange(1000, 1000, 1000, 1000);
  CHECK(clock.at(1000 + 1'000'000'000)->error_ns == 100'000);
  CHECK(clock.at(1000 + 1'000'000'000)->offset_ns == 0);
  const std::int64_t later = 1000 + 1'000'000'000;
  clock.exchange(later, later + 60'000, later + 60'000, later + 100'000);
  CHECK(clock.at(later + 100'000)->offset_ns == 10'000);
  CHECK(clock.at(later + 100'000)->error_ns < 60'000);
}

TEST_CASE("times that cannot be are left out") {
  constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();
  constexpr std::int64_t kLeast = std::numeric_limits<std::int64_t>::min();
  ClockOffset clock;
  clock.exchange(1000, 5000, 4000, 2000);  // answered before it came
  clock.exchange(1000, 5000, 9000, 2000);  // held for longer than it was away
  clock.exchange(2000, 5000, 5000, 1000);  // back before it was sent
  for (std::int64_t a : {kLeast, kMost, std::int64_t{-1}})
    for (std::int64_t b : {kLeast, kMost, std::int64_t{0}}) clock.exchange(1000, a, b, 2000);
  CHECK_FALSE(clock.at(2000));
}
