#include "actors/protocol/detector.hpp"

#include <algorithm>
#include <cmath>

namespace troupe {
namespace {
double seconds(Instant i) { return std::chrono::duration<double>(i).count(); }
}  // namespace

void Detector::add(ProcessId peer, Instant now) {
  Peer& p = peers_[peer];
  p = Peer{};
  p.last = now;
}

void Detector::remove(ProcessId peer) { peers_.erase(peer); }

void Detector::beat(ProcessId peer, Instant now) {
  auto at = peers_.find(peer);
  if (at == peers_.end()) return;
  notice_pause(now);
  Peer& p = at->second;
  if (p.measured && now >= p.last_beat) {
    const double interval = seconds(now - p.last_beat);
    p.intervals.push_back(now - p.last_beat);
    p.sum += interval;
    p.squares += interval * interval;
    if (p.intervals.size() > options_.window) {
      const double oldest = seconds(p.intervals.front());
      p.intervals.pop_front();
      p.sum -= oldest;
      p.squares -= oldest * oldest;
    }
  }
  p.last_beat = now;
  p.measured = true;
  p.last = now;
  p.suspected = false;
}

void Detector::heard(ProcessId peer, Instant now) {
  auto at = peers_.find(peer);
  if (at == peers_.end()) return;
  notice_pause(now);
  at->second.last = now;
  at->second.suspected = false;
}

// What arrived while this loop stood still lies in buffers; silence begins again from here, and
// the interval that spans the pause measures nothing.
void Detector::notice_pause(Instant now) {
  if (polled_ && now - last_poll_ > options_.pause) {
    ++voided_;
    for (auto& [id, p] : peers_) {
      p.last = now;
      p.measured = false;
    }
  }
  polled_ = true;
  last_poll_ = now;
}

double Detector::phi(ProcessId peer, Instant now) const {
  auto at = peers_.find(peer);
  if (at == peers_.end()) return 0;
  const Peer& p = at->second;
  // Before a rhythm is known, what was asked for is taken for it.
  const double n = double(p.intervals.size());
  const double beat = seconds(options_.beat);
  const double mean = n < 5 ? beat : p.sum / n;
  const double variance = n < 5 ? 0 : std::max(0.0, p.squares / n - mean * mean);
  // Schedulers are not exact: a peer that never jittered yet is still allowed to.
  const double deviation = std::max(std::sqrt(variance), beat / 5);
  const double z = (seconds(now - p.last) - mean) / deviation;
  const double tail = 0.5 * std::erfc(z / std::sqrt(2.0));
  return tail > 0 ? -std::log10(tail) : 300;
}

std::vector<ProcessId> Detector::poll(Instant now) {
  notice_pause(now);
  std::vector<ProcessId> fresh;
  for (auto& [id, p] : peers_) {
    if (p.suspected) continue;
    const Instant silence = now - p.last;
    const bool silent =
        silence >= options_.cap || (silence >= options_.floor && phi(id, now) >= options_.phi);
    if (!silent) continue;
    p.suspected = true;
    fresh.push_back(id);
  }
  return fresh;
}

bool Detector::suspected(ProcessId peer) const {
  auto at = peers_.find(peer);
  return at != peers_.end() && at->second.suspected;
}

}  // namespace troupe
