// Records spans: who did what, from when to when, in the process that does it.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

#include "core/text_map.hpp"
#include "core/timeline.hpp"

namespace troupe {

// A span but for its times. The name is copied when the span is recorded.
struct SpanLabel {
  Span::Kind kind = Span::Kind::node;
  std::string_view name;
  std::uint64_t run = 0;
  ProcessId peer = 0;
  std::uint64_t message = 0, bytes = 0;
};

// One line of the timeline: the last spans of one thread or actor, in a ring of fixed size, so that
// old spans make room. Its memory is taken with the first span. Any thread may record; in practice
// one does, and its lock is free unless somebody collects at that moment. Owned by its Trace.
//
// Names beyond kNameBytes are kept beside the ring, once each. One beyond kMostNameBytes, or that
// has no room there any more, is cut in the middle: "begin...end".
class TraceTrack {
 public:
  static constexpr std::size_t kNameBytes = 79;
  static constexpr std::size_t kMostNameBytes = 4096;
  static constexpr std::size_t kMostLongNames = std::size_t{4} << 20;  // bytes, on one line

  void record(const SpanLabel& label, std::int64_t begin_ns, std::int64_t end_ns);

 private:
  friend class Trace;
  struct Entry {
    std::array<char, kNameBytes> name;
    std::uint8_t name_size;
    const std::string* long_name;  // if not null: instead
    Span::Kind kind;
    ProcessId peer;
    std::uint64_t run, message, bytes;
    std::int64_t begin_ns, end_ns;
  };
  TraceTrack(std::string name, std::size_t capacity)
      : name_(std::move(name)), capacity_(capacity) {}
  Track collect(std::uint64_t& dropped);
  // The name as it is kept, or null if there is no room.
  const std::string* keep(std::string_view name);

  const std::string name_;
  const std::size_t capacity_;
  std::mutex mutex_;
  std::unique_ptr<Entry[]> ring_;
  std::uint64_t recorded_ = 0;  // since the last collect; beyond capacity_ the oldest are gone
  std::unordered_set<std::string, TextHash, std::equal_to<>> long_names_;
  std::size_t long_bytes_ = 0;
};

// The recorder of a process: made with its runtime and shared by whoever has something to record.
// Off until enabled; then recording a span costs two clock reads and an uncontended lock. While it
// is off, a burst or a message costs one relaxed load. Thread-safe.
class Trace {
 public:
  explicit Trace(std::size_t spans_per_track = std::size_t{1} << 16);
  Trace(const Trace&) = delete;
  Trace& operator=(const Trace&) = delete;

  void enable(bool on) { enabled_.store(on, std::memory_order_relaxed); }
  bool enabled() const { return enabled_.load(std::memory_order_relaxed); }
  // The line of that name, or that of the calling thread. Valid as long as this.
  TraceTrack& track(const std::string& name);
  TraceTrack& here();

  struct Recording {
    std::vector<Track> tracks;  // those with spans
    std::uint64_t dropped = 0;  // spans that made room for newer ones
  };
  // All spans recorded since the last call; forgets them.
  Recording collect();

  static std::int64_t now_ns();

 private:
  const std::uint64_t number_;  // of all recorders that were ever made: threads remember it
  const std::size_t capacity_;
  std::atomic<bool> enabled_{false};
  std::mutex mutex_;  // guards the list, not the tracks
  std::vector<std::unique_ptr<TraceTrack>> tracks_;
};

// The recorder, when it records.
inline Trace* active(const std::shared_ptr<Trace>& trace) {
  return trace && trace->enabled() ? trace.get() : nullptr;
}

// Records the lifetime of a block on the line of its thread; nothing without a recorder, or while
// the label has no name.
class ScopedSpan {
 public:
  explicit ScopedSpan(Trace* trace, const SpanLabel& label = {})
      : label(label),
        track_(trace ? &trace->here() : nullptr),
        begin_ns_(trace ? Trace::now_ns() : 0) {}
  ~ScopedSpan() {
    if (track_ && !label.name.empty()) track_->record(label, begin_ns_, Trace::now_ns());
  }
  ScopedSpan(const ScopedSpan&) = delete;
  ScopedSpan& operator=(const ScopedSpan&) = delete;

  explicit operator bool() const { return track_ != nullptr; }
  SpanLabel label;

 private:
  TraceTrack* track_;
  std::int64_t begin_ns_;
};

}  // namespace troupe
