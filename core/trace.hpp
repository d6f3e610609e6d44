// Spans for timelines: who did what, from when to when.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

namespace troupe {

// One finished piece of work. Times are nanoseconds of the steady clock of this process.
struct TraceSpan {
  std::string track;  // "cpu:0 lane 1", "executor 2"
  std::string name;   // of the node or the phase; cut to TraceTrack::kNameBytes
  std::uint64_t run = 0;
  std::int64_t begin_ns = 0;
  std::int64_t end_ns = 0;
};

class Trace;

// One line of the timeline: the last spans of one lane or actor, in a ring of fixed size, so that
// recording never allocates and old spans make room. Any thread may record; in practice one does,
// and its lock is free unless somebody collects at that moment. Owned by its Trace.
class TraceTrack {
 public:
  static constexpr std::size_t kNameBytes = 48;

  bool enabled() const { return enabled_.load(std::memory_order_relaxed); }
  // Does nothing while recording is off.
  void record(std::string_view name, std::uint64_t run, std::int64_t begin_ns, std::int64_t end_ns);

 private:
  friend class Trace;
  struct Entry {
    std::array<char, kNameBytes> name;
    std::uint8_t name_size;
    std::uint64_t run;
    std::int64_t begin_ns, end_ns;
  };
  TraceTrack(std::string name, std::size_t capacity, const std::atomic<bool>& enabled)
      : name_(std::move(name)), enabled_(enabled), ring_(capacity) {}

  const std::string name_;
  const std::atomic<bool>& enabled_;
  std::mutex mutex_;
  std::vector<Entry> ring_;
  std::uint64_t recorded_ = 0;  // since the last collect; beyond ring_.size() the oldest are gone
};

// The recorder of a process: made by main and passed to whoever has something to record. Off until
// enabled; then recording a span costs two clock reads and an uncontended lock, and while off one
// relaxed load. Thread-safe. Outlives its users.
class Trace {
 public:
  explicit Trace(std::size_t spans_per_track = 16'384) : capacity_(spans_per_track) {}
  Trace(const Trace&) = delete;
  Trace& operator=(const Trace&) = delete;

  void enable(bool on) { enabled_.store(on, std::memory_order_relaxed); }
  bool enabled() const { return enabled_.load(std::memory_order_relaxed); }
  // A new line of the timeline, valid as long as this.
  TraceTrack& track(std::string name);
  // All spans recorded since the last call, by begin time; forgets them. `dropped`, where given,
  // receives how many had to make room.
  std::vector<TraceSpan> collect(std::uint64_t* dropped = nullptr);

  static std::int64_t now_ns();

 private:
  const std::size_t capacity_;
  std::atomic<bool> enabled_{false};
  std::mutex mutex_;  // guards the list, not the tracks
  std::vector<std::unique_ptr<TraceTrack>> tracks_;
};

// Records the lifetime of a block. `name` must live as long as the block.
class ScopedSpan {
 public:
  ScopedSpan(TraceTrack& track, std::string_view name, std::uint64_t run = 0)
      : track_(track.enabled() ? &track : nullptr),
        name_(name),
        run_(run),
        begin_ns_(track_ ? Trace::now_ns() : 0) {}
  ~ScopedSpan() {
    if (track_) track_->record(name_, run_, begin_ns_, Trace::now_ns());
  }
  ScopedSpan(const ScopedSpan&) = delete;
  ScopedSpan& operator=(const ScopedSpan&) = delete;

 private:
  TraceTrack* track_;
  std::string_view name_;
  std::uint64_t run_;
  std::int64_t begin_ns_;
};

}  // namespace troupe
