#include "actors/net/liveness.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <random>

using namespace troupe;
using namespace std::chrono_literals;
using Time = Liveness::Time;

namespace {

constexpr Time kLimit = 2s, kBeat = 50ms;

// A peer with two connections, as one side sees it: heartbeats come on the one, and what it says
// about the other.
struct LivingPeer {
  std::mt19937_64 random;
  Liveness life{kLimit};
  Time now{}, peer_clock{};
  std::uint64_t sent = 0, arrived = 0;
  bool control_stalls = false, data_stalls = false, held = false, stopped = false;

  explicit LivingPeer(std::uint64_t seed) : random(seed) {
    peer_clock = Time(std::int64_t(random() >> 20));
  }
  std::int64_t up_to(std::int64_t most) { return std::int64_t(random() % std::uint64_t(most)); }

  // One heartbeat's time, with a little data to send at times.
  void beat() {
    const Time step = kBeat + std::chrono::milliseconds(up_to(20));
    now += step;
    peer_clock += step;
    if (up_to(3) == 0) sent += std::uint64_t(up_to(100'000));
    if (stopped) return life.silence(now) > 2 * kBeat ? life.excuse(now) : void();
    // Not more than half of it at a time: there is always something under way.
    if (!data_stalls && !held) arrived += (sent - arrived + 1) / 2;
    if (control_stalls) return;
    life.heard(now);
    life.arrived({peer_clock, arrived, held}, sent, now);
  }
  bool lost() const { return life.silent(now) || life.stalled(now); }
};

}  // namespace

TEST_CASE("a peer that says nothing is silent after the limit") {
  LivingPeer p(1);
  p.beat();
  CHECK(!p.lost());
  p.control_stalls = true;
  const Time from = p.now;
  while (!p.life.silent(p.now)) p.beat();
  CHECK(p.now - from > kLimit);
  CHECK(p.now - from < kLimit + 2 * kBeat);
}

TEST_CASE("a data connection that stands still is noticed while heartbeats come") {
  LivingPeer p(2);
  p.data_stalls = true;
  p.sent = 1;
  p.beat();
  const Time from = p.now;
  while (!p.life.stalled(p.now)) p.beat();
  CHECK(!p.life.silent(p.now));
  CHECK(p.now - from > kLimit);
  CHECK(p.now - from < kLimit + 3 * kBeat);
}

TEST_CASE(
    "a data connection on which nothing is under way, or that is held, does not stand still") {
  LivingPeer p(3);
  p.data_stalls = true;
  for (int i = 0; i < 200; ++i) {
    p.life.heard(p.now += kBeat);
    p.life.arrived({p.now, 100, false}, 100, p.now);
    CHECK(!p.lost());
  }
  p.held = true;
  p.sent = 1'000'000;
  for (int i = 0; i < 200; ++i) {
    p.beat();
    CHECK(!p.lost());
  }
}

TEST_CASE("heartbeats of a peer that stood still itself are no sign of a standstill") {
  Liveness life(kLimit);
  // The peer wakes up after an hour: the first heartbeats come before it has read anything.
  life.arrived({0s, 0, false}, 100, 0s);
  for (int i = 1; i < Liveness::kBeats; ++i) {
    life.arrived({1h + i * 1ms, 0, false}, 100, 3s);
    CHECK(!life.stalled(3s));
  }
  // Ours were read late: they were said in one second.
  Liveness late(kLimit);
  for (int i = 0; i <= 20; ++i) late.arrived({i * kBeat, 0, false}, 100, i * 1s);
  CHECK(!late.stalled(20s));
}

// Random lives: a peer is lost if, and only if, one of its connections stands still for the limit,
// for no reason that excuses it.
TEST_CASE(
    "whatever a peer does, it is lost when a connection of its stands still, and not before") {
  int lost = 0, lived = 0;
  for (std::uint64_t seed = 1; seed <= 400; ++seed) {
    CAPTURE(seed);
    LivingPeer p(seed);
    Time since{};  // when a connection began to stand still with something on it
    bool broken = false;
    for (int i = 0; i < 400 && !p.lost(); ++i) {
      if (!broken && p.up_to(40) == 0) p.held = !p.held;
      if (!broken && p.up_to(60) == 0) p.stopped = !p.stopped;
      if (!broken && p.up_to(150) == 0) {
        broken = true;
        p.held = p.stopped = false;
        (p.up_to(2) == 0 ? p.control_stalls : p.data_stalls) = true;
        p.sent += 1;
        since = p.now;
      }
      p.beat();
      if (broken) REQUIRE(p.now - since < kLimit + 6 * kBeat);
    }
    if (p.lost()) {
      REQUIRE(broken);
      // Two heartbeats may have been missed before, for which it was not excused yet.
      REQUIRE(p.now - since >= kLimit - 3 * (kBeat + 20ms));
    }
    (p.lost() ? lost : lived)++;
  }
  MESSAGE("lost " << lost << ", lived on " << lived);
  CHECK(lost > 50);
  CHECK(lived > 10);
}

TEST_CASE("whatever clock a peer claims, a connection that stands still is noticed") {
  constexpr Time kEnds[] = {Time::min(), Time::max()};
  Liveness life(kLimit);
  Time now{};
  life.arrived({kEnds[0], 0, false}, 100, now);
  for (int beat = 0; beat < 2 * Liveness::kBeats; ++beat)
    life.arrived({kEnds[1], 0, false}, 100, now += kLimit / 2);
  CHECK(life.stalled(now));
}
