// Gives every node a device.
#pragma once

#include "graph/passes/pass.hpp"

namespace troupe {

// How a note begins that tells of nodes that are not where they were wanted. Then comes the device
// that they asked for, up to a comma.
inline constexpr std::string_view kPlacedElsewhere = "place: elsewhere: ";

// The devices in the order of preference: by the rank of their type, then by job, task, index.
std::vector<TargetDevice> by_preference(std::vector<TargetDevice> devices,
                                        const KernelIndex* kernels);

// Whether the node can be on the device: it has a kernel there, or needs none.
bool has_kernel(const TargetDevice& device, const NodeDef& node, const Target& target);

// Sets NodeDef::device to a full name on every node but feeds.
//   - What shares a resource, is colocated or has one name of a colocation group goes together.
//     Where a resource is among them, constraints that contradict each other are an error even
//     with soft placement (paper, 4.3): there is one copy of it.
//   - State that an earlier compile placed stays there. A constraint that it does not meet is an
//     error, unless it was relaxed then, or no device meets it.
//   - A group goes to the first preferred device that satisfies the constraints of all its members
//     and has kernels for them; with soft placement, constraints on type and index that nobody
//     can satisfy are dropped and a note says so, and one for each such constraint that begins with
//     kPlacedElsewhere and names the line. Job and task always hold.
//   - A generator (no inputs, one output) goes with its only consumer, Shape, Rank and Size go
//     with their input, unless they are constrained themselves. A small unconstrained constant
//     is copied to each device that reads it.
//   - Variables are where `target.fixed` says; who compiles for several tasks sets that by
//     variable_homes().
// Errors tell apart: a malformed constraint, one that no device matches, members
// of a group that contradict each other, no kernel on the devices that match, no kernel at all,
// and a group whose members have kernels on no common device.
Status place(StepGraph& step, const Target& target);

}  // namespace troupe
