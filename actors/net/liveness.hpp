// Whether a peer that is up is still there.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>

namespace troupe {

// What one side knows about a peer: when it last heard anything, and whether the data that it sends
// arrives. The kernel does not notice for many minutes that a connection stands still while the
// peer's other one works, so each heartbeat, which comes on the control connection, says how much
// has arrived on the data connection.
//
// No clock and no I/O: times are from a clock of the caller's that stops while its process does
// (core/accumulating_clock.hpp), so that a pause of this process makes no peer late.
class Liveness {
 public:
  using Time = std::chrono::nanoseconds;

  // What a heartbeat reports about the data connection in this direction.
  struct Arrived {
    Time said{};              // on the peer's clock
    std::uint64_t bytes = 0;  // that it has read since the connection began
    bool held = false;        // it does not read now, on purpose
  };

  explicit Liveness(Time limit = std::chrono::seconds(2)) : limit_(limit) {}

  // Some byte of the peer arrived at this time.
  void heard(Time at) { heard_ = std::max(heard_, at); }
  // The peer is known to be stopped by its user: what has passed so far does not count against it.
  void excuse(Time now) {
    heard(now);
    waiting_ = false;
  }
  Time silence(Time now) const { return now - heard_; }
  bool silent(Time now) const { return silence(now) > limit_; }

  // A heartbeat; `sent` bytes have left here by now, as far as is known: the last of them may have
  // arrived before they were counted.
  void arrived(const Arrived& said, std::uint64_t sent, Time now) {
    const Time when =
        std::max(said.said, Time(0));  // whatever it says, differences do not overflow
    const bool moves = said.bytes > arrived_ || said.bytes >= sent || said.held;
    arrived_ = std::max(arrived_, said.bytes);
    if (moves) {
      waiting_ = false;
    } else if (!waiting_) {
      waiting_ = true;
      beats_ = 0;
      since_ = now;
      since_said_ = when;
    } else {
      ++beats_;
      last_said_ = when;
    }
  }
  // For how long bytes were under way while nothing arrived.
  Time standstill(Time now) const { return waiting_ ? now - since_ : Time(0); }
  // Heartbeats that were read late count by when they were sent, and several are needed: the peer
  // itself may have stood still.
  bool stalled(Time now) const {
    return waiting_ && beats_ >= kBeats && standstill(now) > limit_ &&
           last_said_ - since_said_ > limit_;
  }

  static constexpr int kBeats = 4;

 private:
  Time limit_;
  Time heard_{};
  std::uint64_t arrived_ = 0;
  bool waiting_ = false;  // the last heartbeat said that something is under way and nothing came
  Time since_{}, since_said_{}, last_said_{};
  int beats_ = 0;  // since then
};

}  // namespace troupe
