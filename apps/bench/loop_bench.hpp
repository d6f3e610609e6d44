// What an iteration of a loop costs beyond its kernels.
#pragma once

#include "apps/bench/executor_bench.hpp"

namespace troupe {

// Rows executor.loop.*, CPU nanoseconds on one lane:
//   count        ns/iteration of `while (i < n) i = i + 1`, both kernels on one i64 included
//   carry_1KiB, carry_1MiB   the same beside a tensor of that size that is handed on
//   nested       ns/iteration of the inner one of two such loops, 1,000 times 1,000
//   body64       ns/node of a body of 64 nodes that hand a tensor on, beside the count
// With `--peer tensorflow` the same loops run there, in turns with ours (tensorflow_loops.py), by
// the wall clock.
Expected<std::vector<ExecutorRow>> bench_loops(Device& device, const ExecutorBench& options);

}  // namespace troupe
