// What a node costs beyond its kernel: the burst on random layered graphs.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "actors/burst/loaded_plan.hpp"
#include "core/status.hpp"
#include "devices/device.hpp"

namespace troupe {

// One line of the benchmark's answer: CPU nanoseconds, the step's reset included.
struct ExecutorRow {
  std::string name;
  double value = 0;
  std::string unit;  // "ns/node", "ns/iteration"
};

struct ExecutorBench {
  int rounds = 5;         // medians of so many
  double seconds = 0.05;  // of one round, at least; one step at least
  std::string only;       // rows whose name contains this; empty: all
};

// CPU nanoseconds for one of `units`, which are what a step of the plan consists of, on one lane.
// The plan needs nothing from outside.
Expected<double> ns_per(std::shared_ptr<const LoadedPlan> program, double units,
                        const ExecutorBench& options);

// Rows executor.noop.WIDTHxDEPTH (control edges, kernels that do nothing) and
// executor.identity.WIDTHxDEPTH (data edges, one 4-byte tensor a node, passed on) for
// layered_graph of 16x1024, 32x8192, 1024x16, 8192x32 and 1024x1024, and .chain of 10,000 nodes.
// One lane. `device` must be synchronous; its allocator makes the tensors of the roots.
Expected<std::vector<ExecutorRow>> bench_executor(Device& device, const ExecutorBench& options);

}  // namespace troupe
