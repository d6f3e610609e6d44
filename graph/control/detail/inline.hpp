// What lowering knows while it puts the nodes of a function in the place of a call.
#pragma once

#include <map>
#include <string>
#include <tuple>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "troupe/graph/control/ops.hpp"
#include "troupe/graph/detail/suggest.hpp"
#include "troupe/graph/passes/pass.hpp"

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
  std::string loop;  // the _LoopBody around it, whose device it shares
  const Constants* constants = nullptr;
};

// One function as it was inlined: the values of its nodes.
struct Inlined {
  const FunctionDef* function = nullptr;
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

// "function 'f' (mnist.cpp:15)", for errors.
inline std::string called(const FunctionDef& f) {
  return "function " + quoted(f.name) + " (" + f.site.text() + ")";
}

// Puts functions in the place of calls. Lives for one pass over a step.
class Inliner {
 public:
  Inliner(const std::vector<FunctionDef>& functions, const OpRegistry& ops, Rewriter& out);

  void take_name(const std::string& name) { names_.insert(name); }
  // `inputs`: of the call. `wants_done`: somebody comes after it.
  Expected<Lowered> lower(const NodeDef& call, const std::vector<Value>& inputs, Place place,
                          bool wants_done);
  // A node that is dead where one of these values is; for what takes nothing from them.
  NodeId pivot_of(const std::string& name, const std::vector<Value>& values, const NodeDef& like);

 private:
  struct Pivots {
    std::vector<NodeId> of_branch;
  };
  Expected<const FunctionDef*> enter(const std::string& name, const NodeDef& call,
                                     const Place& place);
  Expected<Inlined> inline_function(const FunctionDef& f, const std::vector<Value>& arguments,
                                    const Place& place);
  Status inline_node(Inlined& in, NodeId id, const Place& place, const std::vector<bool>& followed);
  Status inline_call(Inlined& in, NodeId id, const Place& place, bool wants_done);
  Status bind_arguments(Inlined& in, const std::vector<Value>& arguments);
  Expected<Value> saved_value(const NodeDef& node, const Value& handle);
  // The node of that name in its body; kNoNode when there is none.
  NodeId find(const FunctionDef& f, const std::string& name);
  Expected<Lowered> lower_call(const NodeDef& call, const std::vector<Value>& inputs,
                               const Place& inside, bool wants_done);
  Expected<Lowered> lower_branches(const NodeDef& call, const std::vector<Value>& inputs,
                                   const Place& place, const Place& inside, bool wants_done);
  Expected<Lowered> lower_loop(const NodeDef& call, const std::vector<Value>& inputs,
                               const Place& place, const Place& inside);
  void make_constants(const FunctionDef& f, const Place& before, const Place& around,
                      Constants& out);
  Expected<NodeId> begin_loop(const NodeDef& call, const Value& first, const FunctionDef& body,
                    std::vector<Value>& arguments, Constants& constants, const Place& place,
                    const Place& inside);
  const Pivots& pivots(const NodeDef& call, const Value& selector, std::size_t branches,
                       const Place& place, const Place& inside);
  std::vector<Value> switched(const NodeDef& call, const Value& x, const Value& selector,
                              const Pivots& pivots, const Place& place, const Place& inside);
  void merge_results(const NodeDef& call, const std::vector<Inlined>& branches,
                     const Pivots& pivots, const Place& inside, Lowered& out);
  NodeId merge_done(const NodeDef& call, const std::vector<Inlined>& branches, const Pivots& pivots,
                    const Place& inside);

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
  void locate(NodeDef& node, const Inlined& in, const Place& place);
  std::vector<NodeId> control_of(const Inlined& in, const NodeDef& node) const;
  Status in_budget(std::size_t more, const std::string& what);
  static std::size_t work_of(const FunctionDef& f, const Place& place);

  const std::vector<FunctionDef>& functions_;
  const OpRegistry& ops_;
  Rewriter& out_;
  std::unordered_map<std::string_view, const FunctionDef*> by_name_;
  std::unordered_set<std::string> names_;
  std::unordered_map<const FunctionDef*, std::unordered_map<std::string_view, NodeId>> nodes_of_;
  std::vector<std::vector<Inlined>> runs_;  // of calls that were lowered: their branches
  std::vector<const FunctionDef*> open_;    // that are being inlined, outermost first
  // By selector, pivot around them and number of branches.
  std::map<std::tuple<Port, NodeId, std::size_t>, Pivots> pivots_;
  std::size_t work_ = 0;
};

}  // namespace troupe::detail
