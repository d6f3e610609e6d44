// The tape, from which gradient functions are made.
#pragma once

#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "graph/control/functions/body.hpp"
#include "graph/gradients.hpp"

namespace troupe {

// The body that is differentiated: a function, together with the functions that it differentiates.
struct Tape {
  std::unique_ptr<GraphBuilder> body;
  std::vector<TapeLayer> layers;
  std::vector<Port> inputs, outputs;  // its arguments and results
  NodeId end = 0;                     // nodes from here on are new
  std::vector<Output> dy;             // will be arguments
  std::vector<Output> dx;             // by input; empty if none flows

  Output input(std::size_t i) const { return {body.get(), inputs[i]}; }
};

// The tape of a function that is about to be differentiated.
Tape tape_of(const FunctionRecord& record);
// Keeps the tape in the record of a gradient function, for its own gradient. `results`: the inputs
// whose gradients it returns. Takes the tape's body.
void remember(Tape& tape, const std::vector<std::size_t>& results, const std::string& name,
              FunctionRecord& made);

// Adds a node that will be an argument of the gradient function.
Output add_argument(GraphBuilder& g, const ValueType& type, std::string_view name);
// Whether x is the first handle of its variable (which gets the gradient of all its handles, since
// the caller adds them up); true for anything else. `known`: the variables so far.
bool is_first_of_variable(const Output& x, std::set<std::string>& known);
// Zeros with the shape of a handle's variable. Throws Error if the shape is not known.
Output zeros_of_variable(GraphBuilder& g, const Output& handle, DType dtype);

// Marks a function as being differentiated, while it lives. Throws Error if it already is: a
// recursive function would be differentiated forever.
class Differentiating {
 public:
  explicit Differentiating(FunctionRecord& record);
  Differentiating(const Differentiating&) = delete;
  Differentiating& operator=(const Differentiating&) = delete;
  ~Differentiating() { record_.differentiating = false; }

 private:
  FunctionRecord& record_;
};

}  // namespace troupe
