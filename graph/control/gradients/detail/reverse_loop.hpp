// The gradient of a loop: the loop that goes backwards.
#pragma once

#include <string>
#include <vector>

#include "graph/control/gradients/detail/loop_tape.hpp"
#include "graph/gradients.hpp"

namespace troupe::detail {

// Makes a While that goes through the iterations of another one from the last to the first. Its
// variables are the number of iterations to go, the gradients of the loop's variables, the sums of
// the gradients of its invariants, and the lists of what it needs of the body's values, which it
// takes apart from their ends. Lives for one call of make().
class ReverseLoop {
 public:
  // `c` is of the loop that is differentiated; `iteration` is what this one repeats.
  ReverseLoop(GradContext& c, const LoopTape& loop, const IterationGradient& iteration);

  // Adds the loop. Output r + 1 of it is the gradient of result r of the iteration. Throws Error.
  Op make();

 private:
  // An argument of the loop that goes backwards, and what is passed.
  struct Argument {
    std::string name;
    ValueType type;
    Output passed;
    Port stands_for;    // on the tape
    ValueType element;  // of a list whose last element is what it stands for
    PartialShape known = PartialShape::unknown();  // of what its type does not tell the shape
  };
  void list_arguments();
  void add_lists();
  void add_invariants();
  Output values_of(Port port) const;
  Output run_of(Port port) const;
  std::string make_condition() const;
  std::string make_body();
  std::vector<Output> build_body(Body& body) const;
  std::vector<Output> declare(Body& body) const;

  GradContext& c_;
  const LoopTape& loop_;
  const IterationGradient& iteration_;
  std::vector<Argument> arguments_;
  std::size_t variables_ = 0, reverses_ = 0;  // of arguments: how many are variables; which saved
};

}  // namespace troupe::detail
