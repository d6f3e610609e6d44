// What the processes of a job did and when, as values.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/clock_offset.hpp"
#include "core/ids.hpp"

namespace troupe {

// One finished piece of work. Times are nanoseconds of the steady clock of its process.
struct Span {
  enum class Kind : std::uint8_t { node, burst, send, receive, wait, run };
  Kind kind = Kind::node;
  std::string name;
  std::uint64_t run = 0;  // the number of the client's run; 0: of none
  std::int64_t begin_ns = 0, end_ns = 0;
  // Of send and receive: the other process, what names the message at both ends, its size.
  ProcessId peer = 0;
  std::uint64_t message = 0, bytes = 0;
};
inline constexpr std::size_t kSpanKinds = 6;
inline constexpr std::size_t kMostSpanName = 255;  // bytes, of a line's name too
inline constexpr std::size_t kSpansInMessage = 4096;

// A line of the timeline: a thread, whose spans nest, or whatever else has waits of its own.
struct Track {
  std::string name;
  std::vector<Span> spans;
};

struct ProcessTimeline {
  ProcessId process = 0;  // 0: the master's, by whose clock the others are aligned
  std::string name;
  std::optional<ClockOffset::Estimate> clock;  // against the master's; none: not known
  std::vector<Track> tracks;
  std::uint64_t dropped = 0;  // spans that made room for newer ones
  bool complete = true;       // false: it was lost, or did not tell all in time
};

// Of a whole job, from one moment of the master's clock to another.
struct Timeline {
  std::int64_t begin_ns = 0, end_ns = 0;
  std::vector<ProcessTimeline> processes;
};

}  // namespace troupe
