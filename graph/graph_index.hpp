// What compiling asks of a whole graph, kept between compiles.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "core/status.hpp"
#include "core/text_map.hpp"
#include "graph/compile.hpp"
#include "graph/graph.hpp"
#include "graph/op_registry.hpp"

namespace troupe {

// The names of a graph's nodes and functions, and whether the graph is one that compile() takes. Of
// a graph that grows only what is new is looked at, so that a request costs what it needs of the
// graph and not what there is beside that. Kept beside the graph by its owner. A graph in which
// what was there has changed needs another index.
class GraphIndex {
 public:
  // Looks at what was added. An error stays: it names the node and the line that created it.
  Status extend(const GraphDef& graph, const OpRegistry& ops);

  NodeId find(std::string_view node) const;  // kNoNode: there is none
  // The place among GraphDef::functions, or how many there are.
  std::size_t function(std::string_view name) const;

 private:
  Status check_nodes(const GraphDef& graph, const OpRegistry& ops);

  TextMap<NodeId> nodes_;
  TextMap<std::size_t> functions_;
  Status status_;
};

// As compile() of compile.hpp does, where `index` is of this graph, or of what it was before it
// grew. With an observer it costs as much as that one.
Expected<CompiledGraph> compile(const GraphDef& graph, GraphIndex& index,
                                const CompileRequest& request, const Target& target,
                                const StageObserver& observer = {});

}  // namespace troupe
