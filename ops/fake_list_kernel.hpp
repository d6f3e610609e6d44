// How the fake device runs ops on lists, whose elements may be in its memory.
#pragma once

#include <memory>

#include "devices/kernel.hpp"
#include "graph/op_def.hpp"

namespace troupe {

struct KernelSpec;  // ops/op.hpp

bool takes_lists(const OpInfo& op);

// Wraps a CPU kernel. What lists are made of is there at issue, the contents of their elements come
// later. Cheap ops look at no contents: they run before compute() returns, and an element that they
// take off is brought to the device where it is not. The others run twice: before compute() returns
// on elements that stand in for those of the lists, which shows what the results consist of; and on
// the device's stream, where what is new in them is computed.
std::unique_ptr<Kernel> fake_list_kernel(std::unique_ptr<Kernel> cpu, const KernelSpec& spec);

}  // namespace troupe
