#include "actors/supervision/program_lives.hpp"

#include <doctest/doctest.h>

#include <csignal>

using namespace troupe;
using namespace std::chrono_literals;

namespace {

using End = ProgramLives::End;

}  // namespace

TEST_CASE("a program lives again after a signal and exit code 75, and after nothing else") {
  for (const End& end : {End{75, 0}, End{0, SIGKILL}, End{0, SIGSEGV}, End{0, SIGTERM}}) {
    ProgramLives lives({}, 1);
    const auto decision = lives.ended(end, 0, 1s);
    CHECK(decision.again.has_value());
    CHECK(lives.restarts() == 1);
    CHECK(!decision.why.empty());
  }
  for (int code : {0, 1, 2, 3, 130, 143}) {
    ProgramLives lives({}, 1);
    const auto decision = lives.ended({code, 0}, 0, 1s);
    CHECK_FALSE(decision.again.has_value());
    CHECK(decision.exit_code == code);
    CHECK(decision.why.empty() == (code == 0));
  }
}

TEST_CASE("a program that was asked to end is not started again") {
  ProgramLives lives({}, 1);
  lives.stop(SIGTERM);
  CHECK(lives.stopped());
  CHECK(lives.ended({143, 0}, 5, 1s).exit_code == 143);
  CHECK(lives.ended({0, SIGKILL}, 5, 1s).exit_code == 128 + SIGTERM);
  CHECK(lives.ended({75, 0}, 5, 1s).exit_code == 128 + SIGTERM);
  CHECK(lives.ended({0, 0}, 5, 1s).exit_code == 0);
  CHECK(lives.restarts() == 0);
}

TEST_CASE("restarts that get the job on are forgiven, and the others end it with its cause") {
  RestartBudget::Options options;
  options.restarts = 3;
  ProgramLives lives(options, 7);
  Instant now = 0s;
  // A fault every second, for an hour, in a job that gets on.
  for (std::uint64_t step = 1; step < 3600; ++step) {
    now += 1s;
    REQUIRE(lives.ended({0, SIGKILL}, step, now).again.has_value());
  }
  // It falls back, and gets on to where it was: that is not further.
  for (std::uint64_t step : {3590, 3599, 3599}) {
    now += 1s;
    const auto decision = lives.ended({0, SIGKILL}, step, now);
    if (decision.again) continue;
    CHECK(step == 3599);
    CHECK(decision.exit_code == 137);
    CHECK(decision.why ==
          "was ended by signal 9 (Killed), 4 times within 60 s without getting further than step "
          "3599");
    return;
  }
  FAIL("it never ended");
}

TEST_CASE("faults that are far apart end no job, whether it gets on or not") {
  RestartBudget::Options options;
  options.restarts = 1;
  ProgramLives lives(options, 7);
  for (int k = 1; k < 100; ++k) CHECK(lives.ended({75, 0}, 1, k * 61s).again.has_value());
  const auto none = ProgramLives({.restarts = 0}, 1).ended({75, 0}, 1, 1s);
  CHECK_FALSE(none.again.has_value());
  CHECK(none.exit_code == 75);
}
