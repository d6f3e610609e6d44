// The vocabulary of lowering: where values, functions and calls of a step are while functions are
// put in the place of calls.
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

// Where a value of a body is in the lowered step.
struct Value {
  Port port;
  NodeId pivot = kNoNode;      // the value is dead where this node is; kNoNode: it is never dead
  bool waits = false;          // it exists only after the nodes that the call comes after
  std::uint32_t run = kNoRun;  // no tensor: the run of functions that a `saved` port stands for
};

// Constants of the functions of a loop. They are made once, before it, and enter its iterations.
struct Constants {
  std::vector<std::pair<const NodeDef*, Value>> in_order;
  std::unordered_map<const NodeDef*, std::size_t> index;
};

// Where the nodes of a body go.
struct Place {
  std::string prefix;  // of names, with its '/'
  std::string device;
  std::vector<std::string> colocate;
  NodeId pivot = kNoNode;       // of the branch around it
  std::vector<NodeId> control;  // what its nodes come after
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
  bool repeated = false;                   // the body of the loop that `frame` is
  std::vector<std::vector<Value>> values;  // by node and output
  std::vector<std::vector<NodeId>> nodes;  // by node: what a node that comes after it comes after
  std::vector<NodeId> effects;             // nodes that must run when the call does
  std::vector<Value> results;
};

// A call that was lowered.
struct Lowered {
  std::vector<Value> outputs;  // of the call node, `saved` included
  std::vector<NodeId> effects;
  std::vector<NodeId> done;  // after these nodes the call is over; filled in on request
};

// "'x' (mnist.cpp:15)", for errors.
inline std::string called(const NodeDef& node) {
  return quoted(node.name) + " (" + node.site.text() + ")";
}
// "function 'f' (mnist.cpp:15)", for errors.
std::string called(const FunctionDef& f);

}  // namespace troupe::detail
