#include "troupe/core/trace.hpp"

#include <algorithm>
#include <chrono>

namespace troupe {

void TraceTrack::record(std::string_view name, std::uint64_t run, std::int64_t begin_ns,
                        std::int64_t end_ns) {
  if (!enabled() || ring_.empty()) return;
  name = name.substr(0, kNameBytes);
  std::lock_guard lock(mutex_);
  Entry& e = ring_[recorded_++ % ring_.size()];
  std::copy(name.begin(), name.end(), e.name.begin());
  e.name_size = std::uint8_t(name.size());
  e.run = run;
  e.begin_ns = begin_ns;
  e.end_ns = end_ns;
}

TraceTrack& Trace::track(std::string name) {
  std::lock_guard lock(mutex_);
  tracks_.emplace_back(new TraceTrack(std::move(name), capacity_, enabled_));
  return *tracks_.back();
}

std::vector<TraceSpan> Trace::collect(std::uint64_t* dropped) {
  std::vector<TraceSpan> spans;
  std::uint64_t lost = 0;
  std::lock_guard lock(mutex_);
  for (auto& track : tracks_) {
    std::lock_guard track_lock(track->mutex_);
    std::uint64_t size = track->ring_.size(), end = track->recorded_;
    std::uint64_t begin = end > size ? end - size : 0;
    lost += begin;
    for (std::uint64_t i = begin; i < end; ++i) {
      const auto& e = track->ring_[i % size];
      spans.push_back(
          {track->name_, std::string(e.name.data(), e.name_size), e.run, e.begin_ns, e.end_ns});
    }
    track->recorded_ = 0;
  }
  std::stable_sort(spans.begin(), spans.end(),
                   [](const auto& a, const auto& b) { return a.begin_ns < b.begin_ns; });
  if (dropped) *dropped = lost;
  return spans;
}

std::int64_t Trace::now_ns() {
  using namespace std::chrono;
  return duration_cast<nanoseconds>(steady_clock::now().time_since_epoch()).count();
}

}  // namespace troupe
