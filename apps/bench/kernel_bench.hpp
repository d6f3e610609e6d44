// Measures single CPU kernels on the lanes of a device of its own: `troupe bench kernels`.
#pragma once

#include <string>
#include <vector>

#include "core/status.hpp"

namespace troupe {

// One kernel at one shape. "kernels.matmul.100x784x512.t2" ran on two lanes.
struct KernelRow {
  std::string name;
  double value = 0;  // median of the rounds
  std::string unit;  // GFLOP/s by the nominal count (padding included), or GB/s read and written
};

struct KernelBench {
  int threads = 1;
  int rounds = 5;
  double seconds = 0.1;  // of each round
  std::string only;      // rows whose name contains this; empty: all
};

// Matrix products and convolutions of common networks, pools, activations, a loss.
Expected<std::vector<KernelRow>> bench_kernels(const KernelBench& options);

}  // namespace troupe
