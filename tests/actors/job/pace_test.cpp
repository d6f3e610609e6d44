#include "actors/job/pace.hpp"

#include <doctest/doctest.h>

using namespace troupe;

namespace {

// The speed after each step of a job whose steps take that long.
struct Stepping {
  Pace pace;
  std::int64_t now_ms = 5'000'000;
  std::uint64_t number = 0;
  double step(std::int64_t took_ms, std::uint64_t steps = 1) {
    now_ms += took_ms;
    pace.step(number += steps, now_ms);
    return speed(0);
  }
  double speed(std::int64_t idle_ms) const { return Pace::per_second(pace.packed(), idle_ms); }
};

}  // namespace

TEST_CASE("a job of one step in three seconds has a speed from its second step on") {
  Stepping job;
  CHECK(job.step(60'000) == 0);  // it compiles
  for (int i = 0; i < 10; ++i) CHECK(job.step(3'000) == doctest::Approx(1 / 3.0));
  CHECK(job.speed(2'900) == doctest::Approx(1 / 3.0));    // in the middle of a step
  CHECK(job.speed(60'000) == doctest::Approx(1 / 60.0));  // it stands still
}

TEST_CASE("a job of fast steps has the speed of its last seconds") {
  Stepping job;
  job.step(9'000);
  for (int i = 0; i < 5'000; ++i) job.step(1);
  CHECK(job.speed(0) == doctest::Approx(1000));
  CHECK(job.speed(8) == doctest::Approx(1000));  // coarse clocks
  for (int i = 0; i < 500; ++i) job.step(10);    // it becomes slower
  CHECK(job.speed(0) == doctest::Approx(100));
  for (int i = 0; i < 5; ++i) job.step(3'000);
  CHECK(job.speed(0) == doctest::Approx(1 / 3.0));
  for (int i = 0; i < 5'000; ++i) job.step(1);
  CHECK(job.speed(0) == doctest::Approx(1000));
}

TEST_CASE("steps within a tick of the clock, steps that are left out, and a job that begins anew") {
  Stepping job;
  CHECK(job.step(0) == 0);
  for (int i = 0; i < 100; ++i) CHECK(job.step(0) == 0);
  for (int i = 0; i < 1'000; ++i) job.step(i % 4 == 0 ? 4 : 0);
  CHECK(job.speed(0) == doctest::Approx(1000).epsilon(0.2));
  Stepping server;
  for (int i = 0; i < 10; ++i) server.step(500, 50);
  CHECK(server.speed(0) == doctest::Approx(100));
  server.number = 0;
  CHECK(server.step(500) == 0);
  CHECK(server.step(500) == doctest::Approx(2));
}

TEST_CASE("any page has a speed") {
  for (std::uint64_t packed :
       {std::uint64_t{0}, std::uint64_t{5}, std::uint64_t{5} << 32, ~std::uint64_t{0}})
    for (std::int64_t idle : {std::int64_t{-5}, std::int64_t{0}, std::int64_t{1} << 62})
      CHECK(Pace::per_second(packed, idle) >= 0);
}
