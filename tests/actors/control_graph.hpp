// A program of control_program.hpp as a client writes it: the graph, and the text of the C++ that
// makes it.
#pragma once

#include <string>
#include <vector>

#include "tests/actors/control_interpreter.hpp"
#include "troupe/ops/api.hpp"

namespace troupe::test::control {

// What a run of a program is asked for.
struct Built {
  std::vector<Output> feeds;        // x0, x1, n0, n1, xs
  std::vector<Output> results;      // of main; lists stacked
  std::vector<Output> also_needed;  // every feed
  std::vector<Op> effects;
  std::vector<Variable> weights, states;
  Output y;  // the sum of the results that are no integers
};

// The first device has what lists are made of and the feeds. One device: none is named. `text` is
// as far as it came when this throws Error.
Built build(Graph& g, const Program& program, const Variables& first,
            const std::vector<std::string>& devices, std::string& text);

}  // namespace troupe::test::control
