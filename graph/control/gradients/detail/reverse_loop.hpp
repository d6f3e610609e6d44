// The gradient of a loop: the reverse loop.
#pragma once

#include <string>
#include <vector>

#include "graph/control/gradients/detail/loop_tape.hpp"
#include "graph/gradients.hpp"

namespace troupe::detail {

// Makes a While over the iterations of another one in reverse order. Its variables are the number
// of iterations left, the gradients of the loop's variables, the sums of the gradients of its
// invariants, and the lists of body values that it needs, which it pops. Lives for one call of
// make().
class ReverseLoop {
 public:
  // `c`: for the differentiated loop. `iteration`: what this loop repeats.
  ReverseLoop(GradContext& c, const LoopTape& loop, const IterationGradient& iteration);

  // Adds the loop. Its output r + 1 is the gradient of result r of the iteration. Throws Error.
  Op make();

 private:
  // An argument of the reverse loop, and the value passed.
  struct Argument {
    std::string name;
    ValueType type;
    Output passed;
    Port stands_for;    // on the tape
    ValueType element;  // of a list whose last element stands for the port
    PartialShape known = PartialShape::unknown();  // shape, if known better than by the type
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
  std::size_t variables_ = 0, reverses_ = 0;  // number of variables; index of the saved handle
};

}  // namespace troupe::detail
