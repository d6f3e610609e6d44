// A program of control_program.hpp as a client writes it: the graph, and the text of the C++ that
// makes it.
#pragma once

#include <string>
#include <vector>

#include "ops/api.hpp"
#include "tests/actors/control/control_interpreter.hpp"

namespace troupe::test::control {

// What a run of a program is asked for.
struct Built {
  std::vector<Output> feeds;        // x0, x1, n0, n1, xs
  std::vector<Output> results;      // of main; lists stacked
  std::vector<Output> also_needed;  // every feed
  std::vector<Op> effects;
  std::vector<Variable> weights, states;
  Output y;  // the sum of the results that are no integers

  // For a client of the queues: how many elements there are to take, one of them, and one more,
  // which is fed; how many were put, and one of them.
  Output waiting, take_one, added, put_count, put_one;
  Op add;
  bool uses_queues = false;

  bool lists_on_channels = false;  // an op takes a list that was made on another device
};

// The first device has the feeds, the weights and what cannot be elsewhere. One device: none is
// named. `text` is as far as it came when this throws Error.
Built build(Graph& g, const Program& program, const Variables& first, const Placement& placement,
            std::string& text);

// What `print` is told to say first of what statement `number` prints; of what it draws a 'd' is
// behind the number.
std::string message_of(int number, bool drawn);

}  // namespace troupe::test::control
