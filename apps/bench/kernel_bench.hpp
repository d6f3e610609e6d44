// Measures single CPU kernels on the lanes of a device of its own: `troupe bench kernels`.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "core/status.hpp"

namespace troupe {

// One kernel at one shape. "kernels.matmul.100x784x512.t2" ran on two lanes.
struct KernelRow {
  std::string name;
  double value = 0;  // median of the rounds
  std::string unit;  // GFLOP/s by the nominal count (padding included), GB/s read and written, ms
  std::string peer;  // the same operation among those of torch_kernels.py; empty: none
  std::vector<double> rounds;
};

struct KernelBench {
  int threads = 1;
  int rounds = 5;
  double seconds = 0.1;  // of each round
  std::string only;      // rows whose name contains this; empty: all
};

// What happens after each round: a peer's.
using KernelTurn = std::function<Status()>;

// Matrix products and convolutions of common networks, pools, activations, a loss; functions of one
// element, reductions and moves that stand beside PyTorch's.
Expected<std::vector<KernelRow>> bench_kernels(const KernelBench& options,
                                               const KernelTurn& after_round = {});
// The rows that it would measure, without values.
std::vector<KernelRow> kernel_rows(const KernelBench& options);

}  // namespace troupe
