#include "actors/protocol/detector.hpp"

#include <doctest/doctest.h>

#include "core/hash.hpp"

using namespace troupe;
using namespace std::chrono_literals;

namespace {
// Two peers that beat every 50 ms, with jitter, while the detector's loop runs every 20 ms.
struct World {
  Detector detector{Detector::Options{}};
  Random random{1};
  Instant now{};
  Instant next_beat[2] = {0ms, 0ms};
  bool silent[2] = {false, false};
  std::vector<ProcessId> suspected;

  World() {
    detector.add(1, now);
    detector.add(2, now);
  }
  void pass(Instant time, Instant step = 20ms) {
    for (const Instant end = now + time; now < end; now += step) {
      for (ProcessId p : {1u, 2u})
        while (next_beat[p - 1] <= now) {
          if (!silent[p - 1]) detector.beat(p, now);
          next_beat[p - 1] += 45ms + Instant(std::int64_t(random.below(10'000'000)));
        }
      for (ProcessId p : detector.poll(now)) suspected.push_back(p);
    }
  }
};
}  // namespace

TEST_CASE_FIXTURE(World, "peers that beat are not suspected") {
  pass(60s);
  CHECK(suspected.empty());
}

TEST_CASE_FIXTURE(World,
                  "a peer that falls silent is suspected between the floor and half a second") {
  pass(10s);
  silent[1] = true;
  pass(180ms);
  CHECK(suspected.empty());
  pass(320ms);
  CHECK(suspected == std::vector<ProcessId>{2});
  CHECK(detector.suspected(2));
  CHECK_FALSE(detector.suspected(1));
  pass(5s);
  CHECK(suspected.size() == 1);  // said once
  silent[1] = false;
  pass(100ms);
  CHECK_FALSE(detector.suspected(2));
}

TEST_CASE_FIXTURE(World, "a pause of one's own suspects nobody") {
  pass(10s);
  for (int i = 0; i < 20; ++i) {
    now += 5s;  // this loop stood still; the beats of that time come when it wakes
    next_beat[0] = next_beat[1] = now + 30ms;
    pass(400ms);
  }
  CHECK(suspected.empty());
  CHECK(detector.voided() == 20);
  silent[0] = true;
  pass(500ms);
  CHECK(suspected == std::vector<ProcessId>{1});  // and still sees who is gone
}

TEST_CASE_FIXTURE(World, "a peer that never beat is suspected after the cap at the latest") {
  silent[0] = silent[1] = true;
  pass(2100ms);
  CHECK(suspected.size() == 2);
}

TEST_CASE_FIXTURE(World, "data is life") {
  pass(5s);
  silent[0] = true;
  for (int i = 0; i < 100; ++i) {
    detector.heard(1, now);
    pass(100ms);
  }
  CHECK(suspected.empty());
}

TEST_CASE_FIXTURE(World, "a peer with a slow rhythm is given more time") {
  Detector slow{Detector::Options{}};
  slow.add(1, 0ms);
  Instant t{};
  for (int i = 0; i < 50; ++i, t += 400ms) {
    for (Instant p = t; p < t + 400ms; p += 50ms) CHECK(slow.poll(p).size() <= (i < 8 ? 1 : 0));
    slow.beat(1, t + 399ms);
  }
  CHECK(slow.phi(1, t + 400ms) < 8);
}

TEST_CASE_FIXTURE(World, "a removed peer is forgotten") {
  detector.remove(1);
  silent[0] = true;
  pass(5s);
  CHECK(suspected.empty());
  CHECK(detector.phi(1, now) == 0);
}
