// How far the clock of another process is from ours, learnt from messages that carry their times.
#pragma once

#include <cstdint>
#include <optional>

namespace troupe {

// The estimate of NTP (RFC 5905, section 8) over messages that go to and fro. An exchange bounds
// the offset by half of its round trip, whatever part of that each way took; the best one is kept
// until a newer one is better than what is left of it: two clocks may drift apart by 100 us a
// second, and an old exchange is worth that much less.
//
//   ours    sent ----------.              ,----> received
//   theirs                  `-> arrived -'  answered
//
// Times are nanoseconds of steady clocks. Theirs are what they say: a liar is wrong about its own
// clock only. Owned by whoever counts the exchanges; a plain value.
class ClockOffset {
 public:
  struct Estimate {
    std::int64_t offset_ns = 0;  // their clock shows so much more than ours
    std::int64_t error_ns = 0;   // and is off by at most this, either way
  };

  // What cannot have happened is left out.
  void exchange(std::int64_t sent, std::int64_t arrived, std::int64_t answered,
                std::int64_t received);
  // As of a moment of our clock; nothing before the first exchange.
  std::optional<Estimate> at(std::int64_t now) const;

 private:
  std::int64_t offset_ = 0, error_ = 0;  // as of `measured_`
  std::int64_t measured_ = 0;
  bool known_ = false;
};

}  // namespace troupe
