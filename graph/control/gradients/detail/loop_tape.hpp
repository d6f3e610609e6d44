// The body of a loop during its differentiation.
#pragma once

#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "graph/control/functions/ops.hpp"
#include "graph/control/gradients/detail/tape.hpp"

namespace troupe::detail {

// The tape of a loop's body, with the roles of its nodes.
class LoopTape {
 public:
  LoopTape(GraphBuilder& g, const NodeDef& loop);

  const NodeDef& loop() const { return loop_; }
  // The name of the body.
  const std::string& function() const { return function_; }
  // The number of variables among the loop's arguments.
  std::size_t variables() const { return variables_; }
  Tape& tape() { return tape_; }
  const Tape& tape() const { return tape_; }
  GraphBuilder& builder() const { return *tape_.body; }
  const NodeDef& node(NodeId id) const { return tape_.body->node(id); }
  // Whether the node is of the body, not of its gradients.
  bool is_of_body(NodeId id) const { return id < tape_.end; }

  const OpDef& op_of(NodeId id) const;
  DType dtype(Port p) const { return node(p.node).out_types[p.index]; }
  ValueType type_of(Port p) const { return {dtype(p), node(p.node).out_shapes[p.index]}; }
  // The loop's input for which the node is the argument; the number of inputs if there is none.
  std::size_t input_of(NodeId id) const;
  // Whether the node is the argument for an invariant.
  bool is_invariant(NodeId id) const;
  bool is_variable_handle(NodeId id) const;
  // Whether the port is the `saved` output of a call in the body.
  bool is_saved(Port p) const;

 private:
  const NodeDef loop_;
  const std::string function_;
  const std::size_t variables_;
  Tape tape_;
  std::unordered_map<NodeId, std::size_t> inputs_;  // by argument node of the tape
};

// The gradient of one iteration, as nodes of the tape.
struct IterationGradient {
  // A value of the body that has a gradient of its own: a list, by iteration.
  struct Inner {
    Port value;
    Output gradients;
    Port dy;  // will be an argument
  };
  // A variable or an invariant whose gradient the loop returns: the gradient of one iteration.
  struct Result {
    std::size_t input = 0;
    Port argument;  // the gradient from later iterations, or the sum over them
    Output value;
    DType dtype = DType::invalid;  // of the gradient; the sum may be of another (wide)
  };
  std::vector<Inner> inner;
  std::vector<Result> results;
  std::set<NodeId> copied;  // nodes in an iteration of the gradient
  std::set<Port> from_run;  // values of the body that they use
};

}  // namespace troupe::detail
