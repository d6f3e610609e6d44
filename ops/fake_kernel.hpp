// How the fake device runs an op: the CPU kernel, later, on memory the host cannot read.
#pragma once

#include <memory>

#include "core/status.hpp"
#include "devices/kernel.hpp"
#include "graph/op_def.hpp"

namespace troupe {

struct KernelSpec;  // ops/op.hpp

// False where the shapes of the outputs depend on more than shapes, attributes and host arguments:
// then memory cannot be had when the work is issued; and where an output is a string, which lives
// in host memory only. Such ops have no FAKE kernel. Those on lists do: fake_list_kernel.hpp.
bool runs_on_fake(const OpInfo& op);

// Wraps a CPU kernel. compute() infers the output shapes with the op's shape function, allocates
// them on the device and enqueues work on the device's stream that runs `cpu` on the real inputs
// and copies its results over. An op whose inputs and outputs are all in host memory, or that
// looks at shapes alone (Shape, Rank, Size), runs before compute() returns. The outputs of an
// update of variables are their new values, in device memory.
std::unique_ptr<Kernel> fake_kernel(std::unique_ptr<Kernel> cpu, const KernelSpec& spec);

}  // namespace troupe
