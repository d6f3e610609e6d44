// Graphs and timelines as TensorBoard reads them: TensorFlow's GraphDef and RunMetadata.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "core/timeline.hpp"
#include "graph/graph.hpp"

namespace troupe {

// A serialized GraphDef: nodes with op, inputs, control inputs, device, attributes and the shapes
// of their outputs; functions as its library. A node that has no device of its own has that of
// `devices`, by name. Constants of more than 1 KiB keep dtype and shape alone. Text that is no
// UTF-8 has U+FFFD.
std::string tensorboard_graph(const GraphDef& graph,
                              const std::map<std::string, std::string, std::less<>>& devices = {});

// What nodes did in one run, as a serialized RunMetadata.
struct RunStats {
  std::uint64_t run = 0;
  std::string metadata;
};

// One for each run of the timeline that has nodes, in the order of their numbers: for each device
// the nodes, when they began and ended, and the thread. Times of all processes are of the master's
// clock, moved by `wall_offset_ns` to be since 1970. The copies that replicas have of a node stand
// under its name, with their own as label. Of a process with several devices the nodes
// stand under the name of the process. Spans whose times cannot be are left out. With `node`, only
// runs in which a node of that name ran.
std::vector<RunStats> tensorboard_runs(const Timeline& timeline, std::int64_t wall_offset_ns,
                                       std::string_view node = {});

}  // namespace troupe
