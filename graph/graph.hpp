// The program as data: nodes, ports, and the graph value that travels and is compiled.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "troupe/core/attr.hpp"
#include "troupe/core/dtype.hpp"
#include "troupe/core/name.hpp"
#include "troupe/core/shape.hpp"
#include "troupe/core/site.hpp"

namespace troupe {

using NodeId = std::uint32_t;
inline constexpr NodeId kNoNode = ~NodeId{0};

// One output of one node.
struct Port {
  NodeId node = kNoNode;
  std::uint32_t index = 0;
  friend auto operator<=>(const Port&, const Port&) = default;
};

// One instance of an op. `attrs` holds every attribute, defaults filled in. Types and shapes of
// the outputs are what inference knew when the node was added. A value.
struct NodeDef {
  std::string name;
  std::string op;
  std::vector<Port> inputs;     // data, in the order of the op's arguments
  std::vector<NodeId> control;  // must finish first; sorted, no duplicates
  AttrMap attrs;
  std::string device;                 // partial constraint as DeviceName text; "" for none
  std::vector<std::string> colocate;  // names of nodes that must share this one's device
  std::int32_t replica = -1;          // copy index when the node was made for replicas, else -1
  Site site;
  std::vector<DType> out_types;
  std::vector<PartialShape> out_shapes;
};

// An append-only list of nodes: an input names an earlier node, but for the back edges of loops
// (into Merge, from NextIteration). `seed` keys its random ops.
struct GraphDef {
  std::vector<NodeDef> nodes;
  std::uint64_t seed = 0;

  // kNoNode when there is none. Linear; builders keep an index of their own.
  NodeId find(std::string_view name) const;
};

}  // namespace troupe
