// The data types of lowering: values, places, inlined functions and lowered calls.
#pragma once

#include <cstdint>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "graph/detail/suggest.hpp"
#include "graph/node_query.hpp"

namespace troupe::detail {

inline constexpr std::uint32_t kNoRun = ~std::uint32_t{0};

// A value of a body, in the lowered step.
struct Value {
  Port port;
  NodeId pivot = kNoNode;      // the value is dead if this node is; kNoNode: never
  bool waits = false;          // exists only after the nodes that the call comes after
  std::uint32_t run = kNoRun;  // for a `saved` output instead of a tensor: the run of functions
};

// Constants of the functions of a loop: made once, before it, and passed into its iterations.
struct Constants {
  std::vector<std::pair<const NodeDef*, Value>> in_order;
  std::unordered_map<const NodeDef*, std::size_t> index;
};

// The place of a body's nodes.
struct Place {
  std::string prefix;  // of names, with its '/'
  std::string device;
  std::vector<std::string> colocate;
  NodeId pivot = kNoNode;       // of the branch around it
  std::vector<NodeId> control;  // nodes before all of them
  std::int32_t replica = -1;
  std::size_t depth = 0;
  Site site;                // of the call
  std::string loop;         // the _LoopBody around it, if it shares its device
  std::uint32_t frame = 0;  // the loop or function around it, see Loops
  const Constants* constants = nullptr;
};

// A function that was inlined at one place: the values of its nodes there.
struct Inlined {
  const FunctionDef* function = nullptr;
  std::uint32_t frame = 0;
  bool repeated = false;                   // the body of the loop `frame`
  std::vector<std::vector<Value>> values;  // by node and output
  std::vector<std::vector<NodeId>> nodes;  // by node: for control edges from it
  std::vector<NodeId> effects;             // nodes that must run when the call does
  std::vector<Value> results;
};

// A call that was lowered.
struct Lowered {
  std::vector<Value> outputs;  // of the call node, including `saved`
  std::vector<NodeId> effects;
  std::vector<NodeId> done;  // the call is over after these nodes; filled in on request
};

// "'x' (mnist.cpp:15)", for errors.
inline std::string called(const NodeDef& node) {
  return quoted(node.name) + " (" + node.site.text() + ")";
}
// "function 'f' (mnist.cpp:15)", for errors.
std::string called(const FunctionDef& f);

}  // namespace troupe::detail
