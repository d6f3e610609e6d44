// A timeline in Chrome's trace event format, as Perfetto (ui.perfetto.dev) opens it.
#pragma once

#include <string>

#include "core/timeline.hpp"

namespace troupe {

// One JSON object. Processes are processes there, lines are threads, spans are complete events (X)
// with their kind as category; a message or tensor that both ends recorded is a flow (s, f) from
// its send to its receive. Times are microseconds from the beginning of the timeline.
//
// Whatever the processes say, the result keeps the format's rules: spans of a line nest or are
// disjoint, those that are neither go to a line of their own beside it; nothing ends before it
// begins; a flow has both ends. Clocks are aligned to the master's by the estimates, moved as
// little as it takes for no message with the master to come before it was sent. A receive from
// another worker that would still do that begins with its send instead. Spans that lie more than a
// second outside of the timeline are left out.
//
// otherData holds, for each process but the master's, the estimated offset of its clock, the error
// of that (null: not known) and what it was aligned by, in microseconds, and whether it told all;
// and the numbers of spans that are dropped, left out and moved.
std::string chrome_trace(const Timeline& timeline);

}  // namespace troupe
