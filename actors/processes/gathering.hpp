// How what the processes of a job recorded comes together at the master. No threads, no sockets.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "core/trace.hpp"
#include "serialization/messages.hpp"

namespace troupe {

// Worker: its recording, in messages that each keep others waiting for a moment at most. The last
// one says that it is.
std::vector<TraceSpans> in_messages(Trace::Recording recording);

// Master: who was asked for a recording, and what came of it. What nobody asked for is left out,
// and of what one process says no more than kMostSpans in kMostTracks are kept, so that none takes
// memory at will.
class Gathering {
 public:
  static constexpr std::size_t kMostSpans = std::size_t{1} << 20;
  static constexpr std::size_t kMostTracks = 1024;

  void ask(ProcessId process, std::string name, std::optional<ClockOffset::Estimate> clock);
  void take(ProcessId from, TraceSpans message);
  void lost(ProcessId process) { waiting_.erase(process); }
  // Everybody has answered, or is lost.
  bool done() const { return waiting_.empty(); }
  // What is there, by process; of whoever did not tell all it says so. Forgets it.
  std::vector<ProcessTimeline> result();

 private:
  std::map<ProcessId, ProcessTimeline> timelines_;
  std::map<ProcessId, std::size_t> waiting_;  // who has more to tell: its spans so far
};

}  // namespace troupe
