// What gradient functions are made of.
#pragma once

#include <map>
#include <memory>
#include <set>
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

// Of a function that is about to be differentiated.
Tape tape_of(const FunctionRecord& record);
Output add_argument(GraphBuilder& g, const ValueType& type, std::string_view name);

// Of several handles on one variable the first one gets the gradient of all, since those around the
// call are added up. Of anything else true.
bool is_first_of_variable(const Output& x, std::set<std::string>& known);

// While a function is differentiated; one that calls itself would be for ever.
class Differentiating {
 public:
  explicit Differentiating(FunctionRecord& record);
  Differentiating(const Differentiating&) = delete;
  Differentiating& operator=(const Differentiating&) = delete;
  ~Differentiating() { record_.differentiating = false; }

 private:
  FunctionRecord& record_;
};

// The name of the op that adds this gradient to a sum, where it is one that is zero but for a part
// (OpDef::added); else "". And such a node.
std::string op_that_adds(const Output& gradient);
NodeSpec added_to(const Output& sum, const Output& gradient);

// Zeros of the shape of the variable behind a handle. Throws Error when it is not known.
Output zeros_of_variable(GraphBuilder& g, const Output& handle, DType dtype);

// A constant of another builder that is small enough to be there twice.
const Tensor* small_constant(const GraphBuilder& from, Port p);
Output clone_constant(GraphBuilder& to, const GraphBuilder& from, Port p, const Tensor& value);
// A node as another builder has it, with these inputs.
NodeSpec moved_node(const GraphBuilder& from, NodeId id, std::vector<Output> inputs);

// The new nodes of a tape as a function in the making: its arguments are there at once, what they
// are used for once the tape is differentiated. Lives as long as the body is open.
class Extraction {
 public:
  Extraction(Tape& tape, Body& body, std::size_t branch, bool vague);
  void run(const std::vector<std::size_t>& results);

 private:
  ValueType type_of(Port p, bool vague) const;
  bool is_dy(NodeId id) const;
  void need(Port p);
  void move(NodeId id);
  Output here(Port p);
  Output saved(Port p);

  Tape& tape_;
  Body& body_;
  const std::size_t branch_;
  GraphBuilder& to_;
  GraphBuilder& from_;
  std::vector<Output> saved_;  // handles, by layer
  std::map<Port, Output> here_;
  std::map<NodeId, Op> moved_;
  std::set<NodeId> needed_;
};

// What a gradient function remembers, so that it has a gradient itself. Takes the tape's body.
void remember(Tape& tape, const std::vector<std::size_t>& results, const std::string& name,
              FunctionRecord& made);

// The gradient of a Call of a function that calls itself.
bool calls_itself(GraphBuilder& g, const std::string& function);
std::vector<Output> recursive_gradient(GradContext& c);

// The new nodes of a tape as the body of a function of their own, which returns the gradients of
// the inputs `results`. `branch`: of the call that the function belongs to. `vague`: who calls it
// may know less of shapes than the tape does.
void extract(Tape& tape, const std::vector<std::size_t>& results, std::size_t branch, bool vague,
             Body& body);

}  // namespace troupe
