#include "actors/processes/farewell.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <map>
#include <random>
#include <vector>

using namespace troupe;
using namespace std::chrono_literals;
using Deed = Farewell::Deed;

TEST_CASE("a process that leaves in time is only waited for") {
  Farewell farewell(0s, 5s, 1s);
  for (auto now = 0ms; now < 5s; now += 20ms) CHECK(farewell.look(1, false, now) == Deed::wait);
}

TEST_CASE("a process is killed once when patience is over, and given up after the grace") {
  Farewell farewell(10s, 5s, 1s);
  CHECK(farewell.look(1, false, 14'999ms) == Deed::wait);
  CHECK(farewell.look(1, false, 15s) == Deed::kill);
  CHECK(farewell.look(1, false, 15'500ms) == Deed::wait);
  CHECK(farewell.look(1, false, 15'999ms) == Deed::wait);
  CHECK(farewell.look(1, false, 16s) == Deed::give_up);
  CHECK(farewell.look(1, true, 17s) == Deed::give_up);
}

TEST_CASE("a process that is stopped is killed at once, with a grace of its own") {
  Farewell farewell(0s, 5s, 1s);
  CHECK(farewell.look(1, true, 1s) == Deed::kill);
  CHECK(farewell.look(2, false, 1s) == Deed::wait);
  CHECK(farewell.look(1, true, 2s) == Deed::give_up);
  CHECK(farewell.look(2, false, 2s) == Deed::wait);
  CHECK(farewell.look(2, false, 5s) == Deed::kill);
}

// Processes leave, hang or are stopped at random times; some cannot be killed. Whatever happens the
// wait is over in bounded time, and nobody is killed who would have left.
TEST_CASE("no wait for processes lasts longer than patience and grace, whatever they do") {
  for (std::uint64_t seed = 1; seed <= 500; ++seed) {
    CAPTURE(seed);
    std::mt19937_64 random(seed);
    auto up_to = [&](std::int64_t most) { return std::int64_t(random() % std::uint64_t(most)); };
    struct Process {
      Farewell::Time leaves, stops, dies_after;  // of a kill; 24 h: never
      bool dead = false, killed = false, given_up = false;
      Farewell::Time dies = 24h;
    };
    const Farewell::Time patience = std::chrono::milliseconds(up_to(3000));
    const Farewell::Time grace = std::chrono::milliseconds(1 + up_to(1000));
    std::vector<Process> all(1 + std::size_t(up_to(5)));
    for (Process& p : all) {
      p.leaves =
          up_to(2) ? Farewell::Time(24h) : Farewell::Time(std::chrono::milliseconds(up_to(4000)));
      p.stops =
          up_to(3) ? Farewell::Time(24h) : Farewell::Time(std::chrono::milliseconds(up_to(4000)));
      p.dies_after =
          up_to(3) ? Farewell::Time(std::chrono::milliseconds(up_to(50))) : Farewell::Time(24h);
    }
    Farewell farewell(0s, patience, grace);
    Farewell::Time now{};
    for (bool waits = true; waits; now += std::chrono::milliseconds(1 + up_to(100))) {
      REQUIRE(now <= patience + grace + 200ms);
      waits = false;
      for (std::size_t i = 0; i < all.size(); ++i) {
        Process& p = all[i];
        const bool stopped = now >= p.stops;
        p.dead |= (!stopped && now >= p.leaves) || now >= p.dies;
        if (p.dead) continue;
        const Deed deed = farewell.look(std::int64_t(i), stopped, now);
        waits |= deed != Deed::give_up;
        p.given_up = deed == Deed::give_up;
        if (deed != Deed::kill) continue;
        REQUIRE(!p.killed);
        REQUIRE((stopped || now >= patience));
        p.killed = true;
        p.dies = now + p.dies_after;
      }
    }
    for (const Process& p : all) {
      REQUIRE((p.dead || p.given_up));
      if (p.given_up && !p.dead) REQUIRE(p.dies_after > grace - 1ms);
    }
  }
}
