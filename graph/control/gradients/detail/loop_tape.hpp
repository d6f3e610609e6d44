// The body of a loop that is being differentiated.
#pragma once

#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "graph/control/functions/ops.hpp"
#include "graph/control/gradients/detail/tape.hpp"

namespace troupe::detail {

// The tape of a loop's body, and what its nodes are there.
class LoopTape {
 public:
  LoopTape(GraphBuilder& g, const NodeDef& loop);

  const NodeDef& loop() const { return loop_; }
  // The name of the body.
  const std::string& function() const { return function_; }
  // How many of the loop's arguments are variables.
  std::size_t variables() const { return variables_; }
  Tape& tape() { return tape_; }
  const Tape& tape() const { return tape_; }
  GraphBuilder& builder() const { return *tape_.body; }
  const NodeDef& node(NodeId id) const { return tape_.body->node(id); }
  // Whether the node is one of the body, not of its gradients.
  bool is_of_body(NodeId id) const { return id < tape_.end; }

  const OpDef& op_of(NodeId id) const;
  DType dtype(Port p) const { return node(p.node).out_types[p.index]; }
  ValueType type_of(Port p) const { return {dtype(p), node(p.node).out_shapes[p.index]}; }
  // The input of the loop that a node is the argument for; the number of inputs if it is none.
  std::size_t input_of(NodeId id) const;
  // Whether the node is the argument for a value that is the same in each iteration.
  bool is_invariant(NodeId id) const;
  bool is_variable_handle(NodeId id) const;
  // Whether the port is what a call in the body saves.
  bool is_saved(Port p) const;

 private:
  const NodeDef loop_;
  const std::string function_;
  const std::size_t variables_;
  Tape tape_;
  std::unordered_map<NodeId, std::size_t> inputs_;  // by node of the tape that is an argument
};

// The gradient of one iteration, as nodes of the tape.
struct IterationGradient {
  // A value of the body that has a gradient beside those of the results: its list, by iteration.
  struct Inner {
    Port value;
    Output gradients;
    Port dy;  // argument to be
  };
  // A variable or an invariant whose gradient the loop returns: that of an iteration on the tape.
  struct Result {
    std::size_t input = 0;
    Port argument;  // that of the iteration after it, or the sum over those
    Output value;
  };
  std::vector<Inner> inner;
  std::vector<Result> results;
  std::set<NodeId> copied;  // nodes that an iteration of the gradient has
  std::set<Port> from_run;  // values of the body that these take
};

}  // namespace troupe::detail
