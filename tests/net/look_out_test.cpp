#include "actors/net/detail/look_out.hpp"

#include <doctest/doctest.h>

using namespace troupe;
using namespace std::chrono_literals;

namespace {

const LookOut::Time kBegin{1000s};

// Looks out at `now`, during which the processor is away for `away`.
bool look(LookOut& look_out, LookOut::Time now, std::chrono::nanoseconds away) {
  if (!look_out.pays(now)) return false;
  if (look_out.goes_on(now, now + away)) look_out.was_undisturbed(now + away);
  return true;
}

}  // namespace

TEST_CASE("a thread that soon has its processor back looks out after each message") {
  LookOut look_out;
  for (int i = 0; i < 1000; ++i) CHECK(look(look_out, kBegin + i * 100us, 3us));
}

TEST_CASE("where others compute it looks out ever more rarely") {
  LookOut look_out;
  int looked = 0;
  for (int i = 0; i < 100'000; ++i) looked += look(look_out, kBegin + i * 1ms, 4ms);
  CHECK(looked > 100'000 / 1100);  // after a second at the latest
  CHECK(looked < 120);
}

TEST_CASE("it looks out again as before once they are gone for as long as it did not") {
  LookOut look_out;
  auto now = kBegin;
  for (; now < kBegin + 10s; now += 1ms) look(look_out, now, 4ms);
  const auto gone = now;
  int missed = 0;
  for (; now < gone + 10s; now += 100us) missed += !look(look_out, now, 3us);
  CHECK(missed <= 10'000);
  for (; now < gone + 20s; now += 100us) CHECK(look(look_out, now, 3us));
  // The next delay costs no more than the first did.
  CHECK(look(look_out, now, 4ms));
  CHECK(!look(look_out, now + 4ms + LookOut::kShortest - 1us, 3us));
  CHECK(look(look_out, now + 4ms + LookOut::kShortest, 3us));
}

TEST_CASE("delays that follow one another double the time") {
  LookOut look_out;
  auto now = kBegin;
  for (auto pause = LookOut::kShortest; pause < LookOut::kLongest; pause *= 2) {
    CHECK(look(look_out, now, 1ms));
    CHECK(!look_out.pays(now + 1ms + pause - 1ns));
    CHECK(look_out.pays(now + 1ms + pause));
    now += 1ms + pause;
  }
}
