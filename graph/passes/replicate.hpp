// Logical replicas: data parallel copies of what depends on a replica's own data.
#pragma once

#include "graph/passes/pass.hpp"

namespace troupe {

inline constexpr std::string_view kReplicasAlike = "replicate: alike: ";

// Copies every node that depends, through data, on a NextElement, a Dequeue or a random op,
// step.replicas times; all else (constants, reads of variables, handles, feeds) stays shared. A
// copy keeps its original's name plus "/replica_<r>" and gets NodeDef::replica = r.
//   - A write node is copied iff an operand that it reduces is; its attribute "replicas" says how
//     many contributions join. Another operand of a write that stays single is replica 0's.
//   - A kernel that reduces an operand (ReplicaMean) stays single, and so does what depends on the
//     data through it alone: its list of inputs gets those of all copies.
//   - A node that waits for a copied one waits for all its copies, but for a copy, which waits for
//     its own replica's (and for all copies of a write).
//   - A fetched copy is the mean in replica order if it is a float scalar, else replica 0's.
//   - Where the target has W > 1 tasks, replica r's copies go to task r % W, unless the node is
//     constrained or runs where its resource is.
// With one replica nothing changes. Where several would compute alike, since what a write reduces
// is fed and a feed is not split, a note that begins with kReplicasAlike says so.
Status replicate(StepGraph& step, const Target& target);

}  // namespace troupe
