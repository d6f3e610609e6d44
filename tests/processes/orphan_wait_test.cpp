#include "actors/processes/orphan_wait.hpp"

#include <doctest/doctest.h>

#include "tests/contains.hpp"

using namespace troupe;
using namespace std::chrono_literals;
using Next = OrphanWait::Next;

namespace {

// Looks ten times in each second of it.
void pass(OrphanWait& wait, Instant& now, Instant time) {
  for (const Instant until = now + time; now < until; now += 100ms) wait.look(now);
  wait.look(now);
}

}  // namespace

TEST_CASE("a worker whose master is not there asks again until its time is over") {
  OrphanWait wait("node1:7077", 3s);
  Instant now = 1h;
  wait.look(now);
  CHECK(wait.ended(unavailable("connection refused")) == Next::retry);
  pass(wait, now, 2900ms);
  CHECK_FALSE(wait.over());
  CHECK(wait.ended(not_found("address of node1: unknown")) == Next::retry);
  pass(wait, now, 100ms);
  CHECK(wait.over());
  CHECK(wait.ended(unavailable("connection refused")) == Next::end);
  CHECK(wait.gave_up().code() == Code::unavailable);
  CHECK(wait.gave_up().message() == "no master at node1:7077 within 3 s: connection refused");
}

TEST_CASE("a worker that waits for its master says so once") {
  const char* text = "waiting at most 60 s for a master at node1:7077";
  OrphanWait silent("node1:7077", 60s), refused = silent, held = silent;
  Instant now = 0s;
  pass(silent, now, 1900ms);
  CHECK(silent.news().empty());  // a master often starts at the same time
  pass(silent, now, 100ms);
  CHECK(silent.news() == text);
  pass(silent, now, 10s);
  CHECK(silent.news().empty());

  refused.look(now = 0s);
  CHECK(refused.ended(unavailable("connection refused")) == Next::retry);
  pass(refused, now, 2s);
  CHECK(refused.news() == text + std::string(": connection refused"));

  for (now = 0s; now < 10s; now += 100ms) held.look(now, true);
  CHECK(held.news().empty());  // a master lets it wait for a place
}

TEST_CASE("time in which a worker is stopped is no time that it waited") {
  OrphanWait wait("node1:7077", 3s);
  Instant now = 0s;
  pass(wait, now, 1s);
  now += 24h;
  pass(wait, now, 1800ms);
  CHECK_FALSE(wait.over());
  pass(wait, now, 200ms);
  CHECK(wait.over());
  CHECK(test::contains(wait.gave_up().message(), "node1:7077 within 3 s"));
}

TEST_CASE("a worker waits for a place as long as there is a master that lets it") {
  OrphanWait wait("node1:7077", 3s);
  Instant now = 0s;
  pass(wait, now, 2s);
  for (int i = 0; i < 100; ++i) wait.look(now += 100ms, true);
  CHECK_FALSE(wait.over());
  CHECK(wait.ended(unavailable("its job ended")) == Next::retry);
  pass(wait, now, 900ms);  // the time before that counts
  CHECK_FALSE(wait.over());
  pass(wait, now, 100ms);
  CHECK(wait.over());
}

TEST_CASE("a worker that had a master begins anew, and waits for as long again") {
  OrphanWait wait("node1:7077", 3s);
  Instant now = 0s;
  pass(wait, now, 2s);
  wait.joined();
  pass(wait, now, 1h);
  CHECK_FALSE(wait.over());
  CHECK(wait.ended(unavailable("the master is lost")) == Next::anew);
}

TEST_CASE("a worker that is told to leave, or refused, waits for nobody") {
  OrphanWait wait("node1:7077", 3s);
  CHECK(wait.ended(ok_status()) == Next::end);
  CHECK(wait.ended(failed_precondition("other kernels")) == Next::end);
  CHECK(wait.ended(invalid_argument("wrong version")) == Next::end);
  wait.joined();
  CHECK(wait.ended(ok_status()) == Next::end);
  OrphanWait none("node1:7077", 0s);
  CHECK_FALSE(none.over());
  CHECK(none.ended(unavailable("connection refused")) == Next::end);
  none.joined();
  CHECK(none.ended(unavailable("the master is lost")) == Next::end);
}
