// Suspicion of peers that fell silent.
#pragma once

#include <deque>
#include <map>
#include <vector>

#include "core/transaction.hpp"

namespace troupe {

// A phi-accrual failure detector over heartbeats: phi is -log10 of the chance that a peer which
// beats as it did so far would be silent for this long. A peer is suspected when phi >= 8 and it
// was silent for at least the floor, or when it was silent for the cap. Anything heard clears it.
//
// The detector watches itself: when its own loop paused for more than `pause`, the silence of that
// time says nothing about the peers, and is voided for all of them (a stopped process must not
// suspect everybody when it wakes). So call `poll` at least every pause / 2.
//
// Suspicion is not proof: process exit and closed connections are told to others, at once, by
// whoever sees them. Owned by one thread or actor.
class Detector {
 public:
  struct Options {
    double phi = 8;
    std::size_t window = 200;                      // intervals remembered
    Instant beat = std::chrono::milliseconds(50);  // what peers were asked to do
    Instant floor = std::chrono::milliseconds(250), cap = std::chrono::seconds(2);
    Instant pause = std::chrono::milliseconds(100);
  };
  explicit Detector(Options options) : options_(options) {}

  void add(ProcessId peer, Instant now);
  void remove(ProcessId peer);
  // A heartbeat arrived.
  void beat(ProcessId peer, Instant now);
  // Data of it arrived: life, but no measure of its rhythm.
  void heard(ProcessId peer, Instant now);
  // The peers that became suspected since the last call, in id order.
  std::vector<ProcessId> poll(Instant now);

  bool suspected(ProcessId peer) const;
  double phi(ProcessId peer, Instant now) const;
  std::size_t voided() const { return voided_; }  // pauses of our own so far

 private:
  struct Peer {
    Instant last{};  // of anything heard
    Instant last_beat{};
    bool measured = false;  // last_beat starts an interval that may be counted
    std::deque<Instant> intervals;
    double sum = 0, squares = 0;  // of the intervals, in seconds
    bool suspected = false;
  };
  void notice_pause(Instant now);

  const Options options_;
  std::map<ProcessId, Peer> peers_;
  Instant last_poll_{};
  bool polled_ = false;
  std::size_t voided_ = 0;
};

}  // namespace troupe
