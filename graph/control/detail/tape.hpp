// What gradient functions are made of.
#pragma once

#include <memory>
#include <vector>

#include "troupe/graph/control/body.hpp"

namespace troupe {

// What a function is differentiated over: itself, or with the functions that it is the gradient of.
struct Tape {
  std::unique_ptr<GraphBuilder> body;
  std::vector<TapeLayer> layers;
  std::vector<Port> inputs, outputs;  // its arguments and results
  NodeId end = 0;                     // nodes from here on are new
  std::vector<Output> dy;             // arguments to be
  std::vector<Output> dx;             // by input; empty where none flows

  Output input(std::size_t i) const { return {body.get(), inputs[i]}; }
};

// The new nodes of a tape as the body of a function of their own, which returns the gradients of
// the inputs `results`. `branch`: of the call that the function belongs to. `vague`: who calls it
// may know less of shapes than the tape does.
void extract(Tape& tape, const std::vector<std::size_t>& results, std::size_t branch, bool vague,
             Body& body);

}  // namespace troupe
