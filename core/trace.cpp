#include "core/trace.hpp"

#include <pthread.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>

namespace troupe {
namespace {

std::atomic<std::uint64_t> last_number{0};

// The line that a thread had last, and whose that was.
struct Here {
  std::uint64_t trace = 0;
  TraceTrack* track = nullptr;
};
thread_local Here t_here;

std::string thread_name() {
  char name[16] = "";
  pthread_getname_np(pthread_self(), name, sizeof name);
  return std::string(name) + " (thread " + std::to_string(syscall(SYS_gettid)) + ")";
}

}  // namespace

Trace::Trace(std::size_t spans_per_track) : number_(++last_number), capacity_(spans_per_track) {}

void TraceTrack::record(const SpanLabel& label, std::int64_t begin_ns, std::int64_t end_ns) {
  const std::string_view name = label.name.substr(0, kNameBytes);
  std::lock_guard lock(mutex_);
  if (!ring_) ring_ = std::make_unique_for_overwrite<Entry[]>(capacity_);
  Entry& e = ring_[recorded_++ % capacity_];
  std::copy(name.begin(), name.end(), e.name.begin());
  e.name_size = std::uint8_t(name.size());
  e.kind = label.kind;
  e.peer = label.peer;
  e.run = label.run;
  e.message = label.message;
  e.bytes = label.bytes;
  e.begin_ns = begin_ns;
  e.end_ns = end_ns;
}

Track TraceTrack::collect(std::uint64_t& dropped) {
  Track track{name_, {}};
  std::lock_guard lock(mutex_);
  const std::uint64_t begin = recorded_ > capacity_ ? recorded_ - capacity_ : 0;
  dropped += begin;
  track.spans.reserve(recorded_ - begin);
  for (std::uint64_t i = begin; i < recorded_; ++i) {
    const Entry& e = ring_[i % capacity_];
    track.spans.push_back({e.kind, std::string(e.name.data(), e.name_size), e.run, e.begin_ns,
                           e.end_ns, e.peer, e.message, e.bytes});
  }
  recorded_ = 0;
  ring_.reset();
  return track;
}

TraceTrack& Trace::track(const std::string& name) {
  std::lock_guard lock(mutex_);
  for (auto& track : tracks_)
    if (track->name_ == name) return *track;
  tracks_.emplace_back(new TraceTrack(name, capacity_));
  return *tracks_.back();
}

TraceTrack& Trace::here() {
  if (t_here.trace != number_) t_here = {number_, &track(thread_name())};
  return *t_here.track;
}

Trace::Recording Trace::collect() {
  Recording all;
  std::lock_guard lock(mutex_);
  for (auto& track : tracks_)
    if (Track spans = track->collect(all.dropped); !spans.spans.empty())
      all.tracks.push_back(std::move(spans));
  return all;
}

std::int64_t Trace::now_ns() {
  using namespace std::chrono;
  return duration_cast<nanoseconds>(steady_clock::now().time_since_epoch()).count();
}

}  // namespace troupe
