// Logical replicas: data parallel copies of the nodes that depend on a replica's own data.
#pragma once

#include "graph/passes/pass.hpp"

namespace troupe {

inline constexpr std::string_view kReplicasAlike = "replicate: alike: ";

// Copies every node that depends, through data, on a NextElement, a Dequeue or a random op,
// step.replicas times; all others (constants, reads of variables, handles, feeds) stay shared. A
// copy has its original's name plus "/replica_<r>", and NodeDef::replica = r.
//   - A write node is copied if an operand that it reduces is; its attribute "replicas" is the
//     number of contributions. Other operands of a write that stays single come from replica 0.
//   - A kernel that reduces an operand (ReplicaMean) stays single, and takes the inputs of all
//     copies. So do nodes that depend on the data only through it.
//   - A single node that waits for a copied one waits for all its copies. A copy waits for that of
//     its own replica (and for all copies of a write).
//   - A fetched copy is the mean in replica order if it is a float scalar, else replica 0's.
//   - If the target has W > 1 tasks, replica r's copies go to task r % W, unless the node is
//     constrained, runs where its resource is, or picks rows of a large variable. The handle of a
//     dataset is copied, too, unless it or a reader of it is constrained: all copies are handles of
//     the same dataset, and each task reads the elements of its replicas.
// With one replica nothing changes. If all replicas would compute the same, because what a write
// reduces is fed and a feed is not split, a note begins with kReplicasAlike.
Status replicate(StepGraph& step, const Target& target);

}  // namespace troupe
