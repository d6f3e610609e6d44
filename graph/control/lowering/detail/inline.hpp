// What lowering knows while it puts the nodes of a function in the place of a call.
#pragma once

#include <deque>
#include <map>
#include <string>
#include <tuple>
#include <unordered_map>
#include <vector>

#include "graph/control/functions/ops.hpp"
#include "graph/control/functions/recursion.hpp"
#include "graph/control/state/state.hpp"
#include "graph/detail/suggest.hpp"
#include "graph/passes/pass.hpp"
#include "graph/unique_names.hpp"

namespace troupe::detail {

inline constexpr std::uint32_t kNoRun = ~std::uint32_t{0};

// A value of a body, where it is now.
struct Value {
  Port port;                   // in the lowered step
  NodeId pivot = kNoNode;      // where this one is dead, the value is; kNoNode: it never is
  bool waits = false;          // it is there only after what the call comes after
  std::uint32_t run = kNoRun;  // no tensor: the run of functions that a `saved` port stands for
};

// Constants of the functions of a loop, as an iteration has them: made before it.
struct Constants {
  std::vector<std::pair<const NodeDef*, Value>> in_order;
  std::unordered_map<const NodeDef*, std::size_t> index;
};

// Where a body goes.
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
  std::uint32_t frame = 0;  // that loop: index into the frames of the Inliner
  const Constants* constants = nullptr;
};

// One function as it was inlined: the values of its nodes.
struct Inlined {
  const FunctionDef* function = nullptr;
  std::uint32_t frame = 0;
  bool repeated = false;                   // the body of a loop, which `frame` is
  std::vector<std::vector<Value>> values;  // by node and output
  std::vector<std::vector<NodeId>> nodes;  // by node: what somebody comes after who comes after it
  std::vector<NodeId> effects;             // what belongs to its targets
  std::vector<Value> results;
};

// A call that was lowered.
struct Lowered {
  std::vector<Value> outputs;  // of the call node, `saved` included
  std::vector<NodeId> effects;
  std::vector<NodeId> done;  // after these it is over; filled in when asked for
};

// A loop as it was lowered so far; number 0 is the step, which is none. Values of its iterations
// that others ask for make it longer: it has more variables and invariants, behind those of the
// client.
struct LoopFrame {
  NodeDef like;  // the call: what is made for the loop is of its line
  std::uint32_t parent = 0;
  Place around, inside;
  NodeId begin = kNoNode, next = kNoNode;
  std::uint32_t variables = 0;   // of the client
  std::uint32_t reverses = 0;    // the frame that it goes back over; 0: none
  std::vector<Value> passed;     // by output of `begin`: what it is before the loop
  std::size_t first_passed = 0;  // how many of them the client's loop has
  struct Added {
    std::uint32_t output = 0;  // of `begin`
    Port next;
  };
  std::vector<Added> added;       // variables
  std::map<Port, Value> kept;     // value of an iteration -> list, behind the loop
  std::map<Port, Value> entered;  // value around it -> in an iteration
  std::map<Port, Value> taken;    // list around it -> its element in an iteration
  Value trips;                    // how many iterations it had
  // By the handle of a queue and the branch: what asks it last in the order of nodes, or the ends
  // of the branches or the loop that do.
  std::map<std::pair<NodeId, NodeId>, std::vector<NodeId>> last_asked;
};

// A function that stays one, since it calls itself, or goes back over one that does. What its
// gradient needs of a call is its record: a list that the call returns behind its results.
struct RecursiveFunction {
  const FunctionDef* function = nullptr;
  std::vector<std::uint32_t> handles;  // of a gradient function: the runs that it is passed
  std::map<NodeId, Value> bound;       // handles on resources, by argument: not handed on
  std::uint32_t number = 0;            // in its region
  std::uint32_t frame = 0;
  std::uint32_t run = 0;  // what it leaves
  Place body, inside;     // of its nodes; of what is made for it
  NodeId begin = kNoNode, end = kNoNode;
  bool effects = false;
  std::vector<NodeId> calls;  // nodes whose outputs its results are
  // What it records: the list so far, and the values in it.
  Port record;
  std::vector<Port> recorded;
  std::map<Port, std::size_t> index;
  // What it recalls of the function that it goes back over: nodes, by index in the record.
  RecursiveFunction* reverses = nullptr;
  Port recalled_from;
  std::map<std::size_t, NodeId> recalled;
};
// Those that a call from outside may reach.
struct Region {
  NodeDef call;
  Place inside;       // of the call; of nodes it has the loop
  DeviceName device;  // all that its nodes say of theirs
  std::vector<RecursiveFunction*> members;
  // By what they are passed of handles.
  std::map<std::pair<const FunctionDef*, std::vector<std::uint32_t>>, RecursiveFunction*> known;
};

// A value whose shape is declared, and known when it is there: its check's name, the message of a
// run in which it has another one, and the line that this names.
struct Ensured {
  std::string name, message;
  Site site;
};

// "'x' (mnist.cpp:15)", for errors.
inline std::string called(const NodeDef& node) {
  return quoted(node.name) + " (" + node.site.text() + ")";
}

// "function 'f' (mnist.cpp:15)", for errors.
inline std::string called(const FunctionDef& f) {
  return "function " + quoted(std::string(original_function(f.name))) + " (" + f.site.text() + ")";
}

// Puts functions in the place of calls. Lives for one pass over a step.
class Inliner {
 public:
  Inliner(const std::vector<FunctionDef>& functions, const OpRegistry& ops, Rewriter& out);

  // Before anything is lowered: says how much may become of the calls among these nodes. Where
  // copies of functions would be too many, large ones are called, like those that call themselves;
  // resource_exhausted, where what is left is still too much.
  Status check_size(const std::vector<NodeDef>& nodes);
  void take_name(const std::string& name) { names_.insert(name); }
  // `inputs`: of the call. `wants_done`: somebody comes after it.
  Expected<Lowered> lower(const NodeDef& call, const std::vector<Value>& inputs, Place place,
                          bool wants_done);
  // A node that is dead where one of these values is; for what takes nothing from them.
  NodeId pivot_of(const NodeDef& call, const std::vector<Value>& values, Place inside);
  // A node of its own that has the value.
  NodeId node_of(const NodeDef& call, const Value& value);
  // A node of role `saved`: `handle` is what a call saved.
  Expected<Value> saved(const NodeDef& node, const Value& handle, std::uint32_t frame);
  // Loops that got more variables: where each output of their beginnings is now, by that node.
  using Moved = std::map<NodeId, std::vector<std::uint32_t>>;
  Moved settle_variables();
  // Calls that got records: whether there are any.
  Expected<bool> settle_records();

 private:
  struct Pivots {
    std::vector<NodeId> of_branch;
  };
  Expected<const FunctionDef*> enter(const std::string& name, const NodeDef& call,
                                     const Place& place);
  Expected<Inlined> inline_function(const FunctionDef& f, const std::vector<Value>& arguments,
                                    const Place& place);
  Status inline_node(Inlined& in, NodeId id, const Place& place, const std::vector<bool>& followed);
  Status check_in_loop(const NodeDef& node, const Place& place) const;
  void come_after_last(NodeDef& node, NodeId queue, const Place& place) const;
  std::vector<NodeId> queues_of(const NodeDef& call, const std::vector<Value>& inputs,
                                bool apart) const;
  Status inline_call(Inlined& in, NodeId id, const Place& place, bool wants_done);
  Status bind_arguments(Inlined& in, const std::vector<Value>& arguments, const Place& place);
  Expected<Value> ensured(const Value& value, const PartialShape& declared, Ensured what,
                          const Place& place);
  Expected<Value> ensured_argument(const FunctionDef& f, std::size_t i, const Value& value,
                                   const Place& place);
  Expected<Value> saved_value(const NodeDef& node, const Value& handle, std::uint32_t frame);
  Expected<Value> saved_list(const NodeDef& node, const Value& handle, std::uint32_t frame);
  Expected<const Inlined*> run_of_loop(const NodeDef& node, const Value& handle) const;
  // The node of that name in its body; kNoNode when there is none.
  NodeId find(const FunctionDef& f, const std::string& name);
  Expected<Lowered> lower_call(const NodeDef& call, const std::vector<Value>& inputs,
                               const Place& inside, bool wants_done);
  Expected<Lowered> lower_branches(const NodeDef& call, const std::vector<Value>& inputs,
                                   const Place& place, const Place& inside, bool wants_done);
  Expected<Lowered> lower_loop(const NodeDef& call, const std::vector<Value>& inputs,
                               const Place& place, const Place& inside);

  // lower_recursion.cpp
  bool stays(const FunctionDef& f, const std::vector<Value>& inputs) const;
  Expected<Lowered> lower_recursive(const NodeDef& call, const FunctionDef& f,
                                    std::vector<Value> inputs, const Place& inside);
  Expected<Lowered> invoke(const NodeDef& call, const FunctionDef& f,
                           const std::vector<Value>& inputs, const Place& inside);
  Lowered call_of(RecursiveFunction& member, NodeId made, const Place& inside);
  Expected<RecursiveFunction*> member_of(Region& region, const FunctionDef& f,
                                         const std::vector<Value>& inputs,
                                         const std::vector<Value>& passed);
  Status begin_function(Region& region, RecursiveFunction& member,
                        const std::vector<Value>& passed);
  Status lower_member(RecursiveFunction& member);
  void end_function(Region& region, RecursiveFunction& member);
  Status check_device(const NodeDef& node);
  bool is_bound(const Value& value) const;
  Status check_passed(const NodeDef& call, const FunctionDef& f,
                      const std::vector<Value>& inputs) const;

  // records.cpp: from a call to the call that goes back over it.
  RecursiveFunction* member_of_run(std::uint32_t run) const;
  RecursiveFunction* member_in(std::uint32_t frame) const;
  Expected<std::vector<Value>> passed(const NodeDef& call, const std::vector<Value>& inputs,
                                      const Place& inside);
  void begin_record(RecursiveFunction& member);
  std::size_t record(RecursiveFunction& member, const Value& value);
  Value recall(RecursiveFunction& member, const Value& value);

  Status ensure_first(const NodeDef& call, const FunctionDef& body, std::vector<Value>& arguments,
                      const Place& before);
  Status ensure_next(const NodeDef& call, Inlined& iteration, const Place& frame);
  void read_first_values(const NodeDef& call, const Value& predicate, const FunctionDef& body,
                         std::vector<Value>& arguments, const Place& place, const Place& inside);
  void make_constants(const FunctionDef& f, const Place& before, const Place& around,
                      Constants& out);
  Expected<NodeId> begin_loop(const NodeDef& call, const Value& first, const FunctionDef& body,
                              std::vector<Value>& arguments, Constants& constants,
                              const Place& place, const Place& inside, std::vector<Value>& before);
  const Pivots& pivots(const NodeDef& call, const Value& selector, std::size_t branches,
                       const Place& place, const Place& inside);
  std::vector<Value> switched(const NodeDef& call, const Value& x, const Value& selector,
                              const Pivots& pivots, const Place& place, const Place& inside);
  void merge_results(const NodeDef& call, const std::vector<Inlined>& branches,
                     const Pivots& pivots, const Place& inside, Lowered& out);
  NodeId merge_done(const NodeDef& call, const std::vector<Inlined>& branches, const Pivots& pivots,
                    const Place& inside);

  // carry.cpp: from a loop to the loop that goes back over its iterations.
  Expected<Value> carry(const Value& value, std::uint32_t from, std::uint32_t to);
  Expected<Value> carry_over(const Value& value, std::uint32_t from, std::uint32_t to);
  std::vector<std::uint32_t> way_back(std::uint32_t from, std::uint32_t to) const;
  bool is_around(std::uint32_t outer, std::uint32_t inner) const;
  bool is_invariant(const LoopFrame& frame, Port port) const;
  Expected<Value> keep(LoopFrame& frame, const Value& value);
  Expected<Value> take(LoopFrame& frame, const Value& list, const Value& kept, bool may_lack);
  Port maker_of(Port value) const;
  void stay_with(NodeDef& node, Port value) const;
  Expected<Value> enter_loop(LoopFrame& frame, const Value& value);
  Expected<Value> trips(LoopFrame& frame);
  Expected<Value> add_input(LoopFrame& frame, const Value& value);
  Expected<Value> add_variable(LoopFrame& frame, const Value& first);
  Value set_next(LoopFrame& frame, const Value& next);
  void add_to_next(LoopFrame& frame, Port next);
  Value before_loop(LoopFrame& frame, NodeDef node);
  Expected<std::uint32_t> reversed_by(const NodeDef& call, const std::vector<Value>& inputs) const;

  // What is made here for a call: of its site, where it goes. Made unique by append.
  NodeDef made(std::string_view name, std::string_view op, const NodeDef& call,
               const Place& inside) const;
  NodeDef switch_node(const NodeDef& call, std::string_view name, const Value& x,
                      const Value& selector, std::size_t branches, const Place& inside) const;
  NodeDef merge_node(const NodeDef& call, std::string_view name, std::vector<Port> inputs,
                     DType dtype, PartialShape shape, const Place& inside) const;
  NodeDef identity(const NodeDef& call, std::string_view name, Port of, const Place& inside) const;
  // Control edges for what would run too early, or in a branch that is not taken.
  void anchor(NodeDef& node, const std::vector<Value>& inputs, const Place& place) const;
  NodeId append(NodeDef node);
  NodeId maker_of_list(const NodeDef& node) const;
  void locate(NodeDef& node, const Inlined& in, const Place& place);
  std::vector<NodeId> control_of(const Inlined& in, const NodeDef& node) const;
  const std::vector<bool>& dying_in(const FunctionDef& f);
  NodeId over(const std::string& name, std::vector<NodeId> effects, const NodeDef& like,
              const Place& place);
  Status in_budget(std::size_t more, const std::string& what);
  Status too_much(const std::string& what) const;
  static std::size_t work_of(const FunctionDef& f, const Place& place);

  const std::vector<FunctionDef>& functions_;
  const Recursion recursion_;
  std::vector<bool> called_;  // by function: too large to be copied
  const OpRegistry& ops_;
  Rewriter& out_;
  Region* region_ = nullptr;               // that is being lowered
  std::deque<RecursiveFunction> members_;  // of all regions
  std::unordered_map<std::uint32_t, RecursiveFunction*> member_of_run_, member_in_;
  std::map<NodeId, std::uint32_t> frame_of_record_;  // by the node that has it
  std::unordered_map<std::string_view, const FunctionDef*> by_name_;
  UniqueNames names_;
  std::unordered_map<const FunctionDef*, std::unordered_map<std::string_view, NodeId>> nodes_of_;
  std::unordered_map<const FunctionDef*, std::vector<bool>> dying_;  // by node of a body
  std::vector<std::vector<Inlined>> runs_;  // of calls that were lowered: their branches
  std::deque<LoopFrame> frames_;
  std::vector<const FunctionDef*> open_;  // that are being inlined, outermost first
  // By selector, pivot around them and number of branches.
  std::map<std::tuple<Port, NodeId, std::size_t>, Pivots> pivots_;
  std::size_t most_work_ = 0, work_ = 0;  // nodes, edges and every 64 bytes of names
};

}  // namespace troupe::detail
