// What gradient functions are made of.
#pragma once

#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "graph/control/functions/body.hpp"
#include "graph/gradients.hpp"

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

// The tape of a function that is about to be differentiated.
Tape tape_of(const FunctionRecord& record);
// Notes in the record of a gradient function what its own gradient is made of. `results`: the
// inputs whose gradients it returns. Takes the tape's body.
void remember(Tape& tape, const std::vector<std::size_t>& results, const std::string& name,
              FunctionRecord& made);

// Adds a node that becomes an argument of the gradient function.
Output add_argument(GraphBuilder& g, const ValueType& type, std::string_view name);
// Of several handles on one variable the first one gets the gradient of all, since those around the
// call are added up: whether x is the first. True for anything else. `known`: the variables so far.
bool is_first_of_variable(const Output& x, std::set<std::string>& known);
// Zeros of the shape of the variable behind a handle. Throws Error if the shape is not known.
Output zeros_of_variable(GraphBuilder& g, const Output& handle, DType dtype);

// Marks a function as one that is being differentiated, while it lives. Throws Error for one that
// is: it calls itself, and would be differentiated for ever.
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
