// Collects the recordings of a job's processes at the master. No threads, no sockets.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "core/trace.hpp"
#include "serialization/messages.hpp"

namespace troupe {

// Worker: its recording, in messages that each delay others only for a moment. The last one is
// marked.
std::vector<TraceSpans> in_messages(Trace::Recording recording);

// Master: which processes were asked for a recording, and their answers. Answers that were not
// asked for are ignored, and of one process at most kMostSpans in kMostTracks are kept, which
// bounds memory.
class Gathering {
 public:
  static constexpr std::size_t kMostSpans = std::size_t{1} << 20;
  static constexpr std::size_t kMostTracks = 1024;

  void ask(ProcessId process, std::string name, std::optional<ClockOffset::Estimate> clock);
  void take(ProcessId from, TraceSpans message);
  void lost(ProcessId process) { waiting_.erase(process); }
  // Whether all processes have answered or are lost.
  bool done() const { return waiting_.empty(); }
  // The recordings so far, by process; incomplete ones say so. Forgets them.
  std::vector<ProcessTimeline> result();

 private:
  std::map<ProcessId, ProcessTimeline> timelines_;
  std::map<ProcessId, std::size_t> waiting_;  // processes with more to send: spans so far
};

}  // namespace troupe
