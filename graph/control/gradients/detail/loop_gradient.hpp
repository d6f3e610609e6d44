// The gradient of a loop: differentiates its body.
#pragma once

#include <vector>

#include "graph/control/gradients/detail/loop_tape.hpp"
#include "graph/gradients.hpp"

namespace troupe::detail {

// Differentiates the body of a loop on a tape, finds the values of the body that this needs, and
// makes the reverse loop (reverse_loop.hpp). Lives for one loop_gradient().
class LoopGradient {
 public:
  explicit LoopGradient(GradContext& c);

  // The gradients, by input of the loop. Throws Error.
  std::vector<Output> run();

 private:
  void name_inner_values();
  void find_flows();
  void flow_to(std::size_t variable);
  void reach(Port port);
  void differentiate();
  void find_needed();
  bool is_made_again(NodeId id, int depth) const;
  bool is_computed_again(NodeId id) const;
  bool repeats_well(const NodeDef& node) const;
  bool takes_variable(std::size_t input) const;
  Status written(std::size_t input) const;
  bool reads_inner_values(NodeId id) const;

  GradContext& c_;
  LoopTape loop_;
  const bool saves_values_;
  const Tape& tape_;           // the loop's
  GraphBuilder& g_;            // the tape's
  std::vector<bool> flows_;    // by variable: has a gradient
  std::vector<bool> reached_;  // by node of the body: on a path from such a variable to its input
  IterationGradient out_;
};

}  // namespace troupe::detail
