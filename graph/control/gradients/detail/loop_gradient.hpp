// The gradient of a loop in the making.
#pragma once

#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "graph/control/functions/ops.hpp"
#include "graph/control/gradients/detail/tape.hpp"
#include "graph/gradients.hpp"

namespace troupe::detail {

// Lives for one call of loop_gradient. Backwards through the body first, on a tape
// (loop_gradients.cpp); then the loop that repeats that is made (reverse_loop.cpp).
class LoopGradient {
 public:
  explicit LoopGradient(GradContext& c);

  // By input of the loop.
  std::vector<Output> run();

 private:
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
  // An argument of the loop that goes backwards, and what is passed.
  struct Argument {
    std::string name;
    ValueType type;
    Output passed;
    Port stands_for;    // on the tape
    ValueType element;  // of a list whose last element is what it stands for
    PartialShape known = PartialShape::unknown();  // of what its type does not tell the shape
  };

  void name_inner_values();
  void find_flows();
  void flow_to(std::size_t variable);
  void reach(Port port);
  void differentiate();
  void find_needed();
  bool is_made_again(NodeId id, int depth) const;
  bool is_computed_again(NodeId id) const;
  bool repeats_well(const NodeDef& node) const;

  void list_arguments();
  void add_lists();
  void add_invariants();
  Output values_of(Port port) const;
  Output run_of(Port port) const;
  std::string make_condition() const;
  std::string make_body();
  std::vector<Output> build_body(Body& body) const;
  std::vector<Output> declare(Body& body) const;

  const OpDef& op_of(NodeId id) const;
  DType dtype(Port p) const { return g_.node(p.node).out_types[p.index]; }
  ValueType type_of(Port p) const { return {dtype(p), g_.node(p.node).out_shapes[p.index]}; }
  std::size_t input_of(NodeId argument) const;
  bool is_invariant(NodeId id) const;
  bool is_variable_handle(NodeId id) const;
  bool takes_variable(std::size_t input) const;
  Status written(std::size_t input) const;
  bool is_saved(Port p) const;
  bool reads_inner_values(NodeId id) const;

  GradContext& c_;
  const NodeDef loop_;
  const std::string function_;  // the body
  const std::size_t variables_;
  const bool saves_values_;
  Tape tape_;
  GraphBuilder& g_;                                 // of the tape
  std::unordered_map<NodeId, std::size_t> inputs_;  // by node of the tape that is an argument
  std::vector<Inner> inner_;
  std::vector<bool> flows_;    // by variable: has a gradient
  std::vector<bool> reached_;  // by node of the body: on a way from such to its input
  std::vector<Result> results_;
  std::set<NodeId> moved_;   // nodes that an iteration has
  std::set<Port> from_run_;  // values of the body that they take

  std::vector<Argument> arguments_;
  std::size_t reverse_variables_ = 0, reverses_ = 0;
};

}  // namespace troupe::detail
