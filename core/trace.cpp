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

// "begin...end", of at most `most` bytes and of whole characters.
std::string cut_in_the_middle(std::string_view name, std::size_t most) {
  constexpr std::string_view kLeftOut = "...";
  const auto begins = [&](std::size_t at) { return (name[at] & 0xc0) != 0x80; };
  std::size_t head = (most - kLeftOut.size() + 1) / 2;
  std::size_t tail = name.size() - (most - kLeftOut.size() - head);
  while (head > 0 && !begins(head)) --head;
  while (tail < name.size() && !begins(tail)) ++tail;
  return std::string(name.substr(0, head)).append(kLeftOut).append(name.substr(tail));
}

}  // namespace

Trace::Trace(std::size_t spans_per_track) : number_(++last_number), capacity_(spans_per_track) {}

void TraceTrack::record(const SpanLabel& label, std::int64_t begin_ns, std::int64_t end_ns) {
  std::string_view name = label.name;
  std::string cut;
  std::lock_guard lock(mutex_);
  if (!ring_) ring_ = std::make_unique_for_overwrite<Entry[]>(capacity_);
  Entry& e = ring_[recorded_++ % capacity_];
  e.long_name = nullptr;
  if (name.size() > kNameBytes) {
    if (name.size() > kMostNameBytes) name = cut = cut_in_the_middle(name, kMostNameBytes);
    e.long_name = keep(name);
    if (!e.long_name) cut = cut_in_the_middle(label.name, kNameBytes);
    name = e.long_name ? std::string_view() : cut;
  }
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

const std::string* TraceTrack::keep(std::string_view name) {
  if (const auto known = long_names_.find(name); known != long_names_.end()) return &*known;
  if (long_bytes_ + name.size() > kMostLongNames) return nullptr;
  long_bytes_ += name.size();
  return &*long_names_.emplace(name).first;
}

Track TraceTrack::collect(std::uint64_t& dropped) {
  Track track{name_, {}};
  std::lock_guard lock(mutex_);
  const std::uint64_t begin = recorded_ > capacity_ ? recorded_ - capacity_ : 0;
  dropped += begin;
  track.spans.reserve(recorded_ - begin);
  for (std::uint64_t i = begin; i < recorded_; ++i) {
    const Entry& e = ring_[i % capacity_];
    track.spans.push_back({e.kind,
                           e.long_name ? *e.long_name : std::string(e.name.data(), e.name_size),
                           e.run, e.begin_ns, e.end_ns, e.peer, e.message, e.bytes});
  }
  recorded_ = 0;
  ring_.reset();
  long_names_.clear();
  long_bytes_ = 0;
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
