// The program as data: nodes, ports, and the graph value that travels and is compiled.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "core/attr.hpp"
#include "core/dtype.hpp"
#include "core/name.hpp"
#include "core/shape.hpp"
#include "core/site.hpp"

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

// A part of a program that nodes run by its name (Call, If, Case, While). Closed: whatever its
// nodes need is among them or comes in as an argument. An argument is a node: Argument, or for a
// resource a handle like the one that it stands for. A value.
struct FunctionDef {
  std::string name;
  std::vector<NodeDef> nodes;     // their inputs, control and colocation name nodes of this list
  std::vector<NodeId> arguments;  // in the order of a call's arguments
  std::vector<Port> results;
  // What a call may count on. Where less is known of a result's shape, a run checks it.
  std::vector<DType> result_types;
  std::vector<PartialShape> result_shapes;
  Site site;
};

// An append-only list of nodes: an input names an earlier node, but for the back edges of loops
// (into Merge, from NextIteration). `seed` keys its random ops. Functions are append-only, too;
// names are unique among them.
struct GraphDef {
  std::vector<NodeDef> nodes;
  std::uint64_t seed = 0;
  std::vector<FunctionDef> functions;

  // kNoNode when there is none. Linear; builders keep an index of their own.
  NodeId find(std::string_view name) const;
  // nullptr when there is none. Linear.
  const FunctionDef* function(std::string_view name) const;
};

}  // namespace troupe
