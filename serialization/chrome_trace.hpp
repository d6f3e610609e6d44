// A timeline in Chrome's trace event format, for Perfetto (ui.perfetto.dev).
#pragma once

#include <string>

#include "core/timeline.hpp"

namespace troupe {

// One JSON object. Processes are processes, tracks are threads, and spans are complete events (X)
// with their kind as category. A message or tensor recorded at both ends is a flow (s, f) from its
// send to its receive. Times are microseconds from the first span.
//
// The result keeps the format's rules for any input: the spans of a thread nest or are disjoint
// (spans of a track that overlap otherwise go to additional threads), nothing ends before it
// begins, and a flow has both ends. Clocks are aligned to the master's by their estimated offsets,
// adjusted as little as needed so that no message to or from the master arrives before it was sent.
// If a receive from another worker still precedes its send, it begins with the send instead. Spans
// more than a second outside of the timeline are left out.
//
// otherData has, for each process but the master's: the estimated offset of its clock and its error
// (null: unknown), the alignment used, in microseconds, and whether all its spans arrived. It also
// has the numbers of dropped, left-out and moved spans.
std::string chrome_trace(const Timeline& timeline);

}  // namespace troupe
