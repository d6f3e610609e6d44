// Gives every node a device.
#pragma once

#include "graph/passes/pass.hpp"

namespace troupe {

// The beginning of a note about nodes that are not on their requested device. Followed by that
// device, up to a comma.
inline constexpr std::string_view kPlacedElsewhere = "place: elsewhere: ";

// The devices in order of preference: by the rank of their type, then by job, task, index.
std::vector<TargetDevice> by_preference(std::vector<TargetDevice> devices,
                                        const KernelIndex* kernels);

// Whether the node has a kernel for the device, or needs none.
bool has_kernel(const TargetDevice& device, const NodeDef& node, const Target& target);

// Sets NodeDef::device to a full name on every node except feeds.
//   - Nodes that share a resource, are colocated or have a common colocation group are one group.
//     If it contains a resource, contradicting constraints are an error even with soft placement
//     (paper, 4.3), because there is one copy of the resource.
//   - State that an earlier compile placed stays there. A constraint that it does not satisfy is an
//     error, unless it was relaxed then, or no device satisfies it.
//   - A group goes to the first preferred device that satisfies the constraints of all its members
//     and has kernels for them. With soft placement, constraints on type and index that no device
//     satisfies are dropped, with a note, and another one for each of them that begins with
//     kPlacedElsewhere and names the line. Job and task always hold.
//   - Unless they are constrained themselves, a generator (no inputs, one output) goes with its
//     only consumer, Shape, Rank and Size go with their input, and a node that picks rows of a
//     large variable goes with the variable. A small unconstrained constant is copied to each
//     device that reads it.
//   - Variables are where `target.fixed` puts them; for several tasks, the caller sets that by
//     variable_homes().
// Errors distinguish: a malformed constraint, one that no device matches, contradicting members of
// a group, no kernel on the matching devices, no kernel at all, and members of a group without a
// common device that has kernels for all.
Status place(StepGraph& step, const Target& target);

}  // namespace troupe
