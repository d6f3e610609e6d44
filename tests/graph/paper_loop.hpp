// A loop of a client's own, in the paper's words.
#pragma once

#include <string>
#include <vector>

#include "graph/builder.hpp"

namespace troupe::test {

//   PaperLoop loop(g, "while");
//   Output i = loop.variable(zero), step = loop.constant(one);
//   loop.again(i < limit);
//   loop.next(0, loop.passed(0) + step);
//   Output last = loop.last(0);
class PaperLoop {
 public:
  PaperLoop(GraphBuilder& g, std::string frame, std::int64_t window = 10)
      : g_(g), frame_(std::move(frame)), window_(window) {}

  // The same in each iteration.
  Output constant(const Output& x) { return enter(x, true); }
  // What it is in an iteration, at first `first`.
  Output variable(const Output& first) {
    const Output begin = enter(first, false);
    merges_.push_back(g_.add("Merge", {begin, begin}));
    return merges_.back();
  }
  const Output& merge(std::size_t v) const { return merges_[v]; }
  // After all variables.
  void again(const Output& predicate) {
    cond_ = g_.add("LoopCond", {predicate});
    for (const Output& merge : merges_) switches_.push_back(let_through(merge));
  }
  // A Switch of the loop: of another value of the condition.
  Op let_through(const Output& x) { return g_.add(NodeSpec{.op = "Switch", .inputs = {x, cond_}}); }
  const Output& predicate() const { return cond_; }
  Output passed(std::size_t v) const { return switches_[v].output(1); }
  void next(std::size_t v, const Output& value) {
    throw_if_error(g_.close_loop(merges_[v].node(), 1, g_.add("NextIteration", {value})));
  }
  Output last(std::size_t v, const char* op = "Leave") const {
    return g_.add(op, {switches_[v].output(0)});
  }

 private:
  Output enter(const Output& x, bool constant) {
    return g_.add(
        "Enter", {x},
        {{"frame_name", frame_}, {"is_constant", constant}, {"parallel_iterations", window_}});
  }

  GraphBuilder& g_;
  const std::string frame_;
  const std::int64_t window_;
  Output cond_;
  std::vector<Output> merges_;
  std::vector<Op> switches_;
};

}  // namespace troupe::test
