// Measures functions of the API as steps of a session: `troupe bench kernels`, rows beside those of
// single kernels.
#pragma once

#include <string>
#include <vector>

#include "apps/bench/peer_rounds.hpp"
#include "apps/bench/rows.hpp"
#include "ops/api.hpp"

namespace troupe {

// An input of a function. Numbers are uniform in [low, high), integers too.
struct FunctionInput {
  Shape shape;
  DType dtype = DType::f32;
  double low = -1, high = 1;
  bool sorted = false;  // ascending
};

// What one run computes: `build` makes it of values that are fed. An update takes its gradient so.
struct FunctionCase {
  std::string name;
  std::vector<FunctionInput> inputs;
  struct Built {
    std::vector<Output> outputs;
    std::vector<Op> targets = {};
  };
  Built (*build)(Graph& g, const std::vector<Output>& x);
};
// In function_cases.cpp.
std::vector<FunctionCase> function_cases();

// "kernels.api.top_k.t1": ms of a run with one lane. Each stands beside the entry of its name in
// torch_functions.py.
Expected<std::vector<BenchRow>> bench_functions(const BenchOptions& options, int threads,
                                                PeerRounds& peers);

}  // namespace troupe
