// A partition in the form that runs: flat arrays, no strings in the hot part.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/buffer.hpp"
#include "core/ids.hpp"
#include "graph/graph.hpp"
#include "graph/op_def.hpp"

namespace troupe {

// Numbering. Nodes are numbered in a topological order, so that "the smallest plan index" names the
// same node in every run. Frame 0 is the root; a static frame, the body of a loop, owns contiguous
// ranges of nodes and of slots. A slot is one output of one node; consumers read the producer's
// slot, and `readers` says how many reads a slot gets in one iteration, so that the last one may
// take the tensor. No edge leads from one frame into another: the nodes of a loop pass values on.
//
//   node i: inputs  input_slots[first_input .. +inputs)
//           outputs slots first_slot .. +outputs
//           edges   edges[first_edge .. +edges): successors to count down when it is done
struct PlanNode {
  std::uint32_t first_input = 0;
  std::uint32_t first_slot = 0;
  std::uint32_t first_edge = 0;
  std::uint32_t edges = 0;
  std::uint16_t inputs = 0;
  std::uint16_t outputs = 0;
  std::uint16_t frame = 0;
  Role role = Role::kernel;
  bool cheap = false;
};

// A successor. Data edges into one node count once each; a node with pending 0 is ready.
// Merge counts control edges and live or dead data inputs separately.
struct PlanEdge {
  std::uint32_t node = 0;
  bool control = false;
};

struct PlanSlot {
  std::uint32_t readers = 0;              // data inputs that read it in this frame
  MemorySpace space = MemorySpace::host;  // where its tensor lives
  bool fetched = false;
};

// A static frame: frame 0 is the whole plan, another one is what a loop repeats. The loop's
// predicate for the first iteration is computed before it, that for each further one by the
// iteration before. With V variables and I invariants:
//
//   loop:  in the parent frame; inputs the first predicate, V first values, I invariants;
//          outputs the V last values. Starts with all inputs, gives all outputs together.
//   body:  the only node of the frame that waits for none; no inputs, outputs V variables and I
//          invariants, as they are in this iteration
//   next:  the only node of the frame that none waits for; inputs the next predicate and the V next
//          values; no outputs
//
// Or a function that calls itself, which has a call at a time; who calls it from the inside waits,
// and its counts and slots are kept aside. With A arguments and V results:
//
//   loop:  the call from outside, in the parent frame; inputs A arguments, outputs V results. Of
//          several functions that call each other only the first has one; the frames of the others
//          are in its own.
//   body:  no inputs, outputs the A arguments of the call at hand
//   next:  inputs its V results, no outputs
//   Role::invoke, anywhere in these frames: a call from inside, inputs and outputs as of `loop`
struct PlanFrame {
  std::string name;                         // the loop's, or the function's
  std::uint32_t parent = 0;                 // a frame before it
  std::uint32_t first_node = 0, nodes = 0;  // with those of the frames inside
  std::uint32_t first_slot = 0, slots = 0;
  std::uint32_t loop = 0, body = 0, next = 0;  // nodes; of frame 0 none
  std::uint32_t variables = 0;
  // Iterations of one loop that its parts on several devices have under way at once, at most.
  std::uint32_t window = 1;
  std::uint32_t leader = 0;  // of a function: the frame of the first one; else 0
  bool is_function() const { return leader != 0; }
};

// What is read once per node or less: for making kernels, for errors, traces and requests.
struct PlanInfo {
  std::string name;
  std::int32_t replica = -1;
  NodeDef def;                         // inputs are not meaningful here; attrs, op, types, site are
  const External* external = nullptr;  // role external: of the definition, which outlives all plans
  std::vector<MemorySpace> input_space;
  std::uint64_t random_key = 0;        // hash of (graph seed, name, replica)
  std::uint32_t resource = ~0u;        // external: index into Plan::resources, of the first handle
  std::vector<std::uint32_t> handles;  // resources of all its handle inputs
  std::uint32_t epoch = 0;             // ordered reads: those of one epoch and container join
  ChannelId channel = 0;               // send, recv
  // Of a recv in a loop: it takes what was sent so many iterations before its own; in the first
  // ones nothing.
  std::uint32_t lag = 0;
  std::uint32_t calls = 0;  // invoke: the frame of the function
};

// A resource that the partition touches, on the partition's own device; without a name, the one of
// its kind that the device has.
struct ResourceRef {
  std::string kind;       // External::resource
  std::string container;  // "" is the default one
  std::string name;       // shared_name or node name of the handle
  NodeDef def;            // the handle's node: dtypes, shapes, capacity; or that of an op without
};

struct PlanFeed {
  std::uint32_t slot = 0;  // where the fed tensor is placed; read in frame 0 only
  std::uint32_t feed = 0;  // index in the request
};
struct PlanFetch {
  std::uint32_t slot = 0;
  std::uint32_t fetch = 0;
};

// The flat form of one partition. Immutable once made, shared by all its steps. Feeds are slots
// that are full before the first burst: `pending` does not count the inputs that read them.
struct Plan {
  std::string device;  // full DeviceName text
  std::vector<PlanNode> nodes;
  std::vector<std::uint32_t> input_slots;
  std::vector<PlanEdge> edges;
  std::vector<PlanSlot> slots;
  std::vector<std::uint32_t> pending;  // initial count per node: data inputs not fed + control
  std::vector<PlanFrame> frames;
  std::vector<std::uint32_t> roots;  // nodes ready at the start, ascending
  std::vector<PlanInfo> info;        // parallel to nodes
  std::vector<PlanFeed> feeds;
  std::vector<PlanFetch> fetches;
  std::vector<ResourceRef> resources;
  bool writes = false;  // has nodes that leave a key (External::commits)
  bool draws = false;   // has nodes that draw random numbers
};

// One cross-partition edge. Its tag is (attempt, channel, turn). Outside of loops there is one
// turn; in a frame they are its iterations, counted from 1 over the whole step. All parts of a loop
// go through the same ones in the same order, so both sides agree without talking.
struct Channel {
  ChannelId id = 0;
  std::uint32_t from = 0, to = 0;  // partition indices
  DType dtype = DType::invalid;
  PartialShape shape;
  std::string loop;  // in whose iterations it carries; empty outside
  std::string name;  // "node:port", for people
};

// What compile() makes of one step. Partition i runs on the device plans[i].device.
struct CompiledGraph {
  std::vector<Plan> plans;
  std::vector<Channel> channels;
  std::uint32_t feeds = 0, fetches = 0;
  std::vector<std::string> notes;  // what the passes did, for `troupe graph --explain`
};

}  // namespace troupe
