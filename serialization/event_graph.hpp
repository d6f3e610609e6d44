// Graphs and timelines for TensorBoard: TensorFlow's GraphDef and RunMetadata.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "core/timeline.hpp"
#include "graph/graph.hpp"

namespace troupe {

// A serialized GraphDef: nodes with op, inputs, control inputs, device, attributes and output
// shapes; functions as its library. A node's device is that in `devices`, by name, or else its own.
// Strings and constants over 1 KiB keep only dtype and shape. Invalid UTF-8 becomes U+FFFD.
std::string tensorboard_graph(const GraphDef& graph,
                              const std::map<std::string, std::string, std::less<>>& devices = {});

// The execution of nodes in one run, as a serialized RunMetadata.
struct RunStats {
  std::uint64_t run = 0;
  std::string metadata;
};

// One for each run of the timeline with nodes, in the order of their numbers: for each device the
// nodes, with begin, end and thread. All times are of the master's clock plus `wall_offset_ns`,
// which makes them relative to 1970. Copies of a node for replicas have the original's name, with
// their own as label. Nodes of a process with several devices are under the process's name. Spans
// with impossible times are left out. With `node`, only runs in which a node of that name ran.
std::vector<RunStats> tensorboard_runs(const Timeline& timeline, std::int64_t wall_offset_ns,
                                       std::string_view node = {});

}  // namespace troupe
