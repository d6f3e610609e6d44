// Which kernels this process takes (ops::builtin() and ops::limit_isa() are in ops/op.hpp): the
// best that the processor, this build and limit_isa allow, or exactly the level that the
// environment names (TROUPE_ISA=v2, v3, v4 or v4-amx), to compare the levels on one machine.
#pragma once

#include <string>

#include "core/status.hpp"

namespace troupe::ops {

// Why there are no kernels: TROUPE_ISA names a level that processor, build or limit lack, or none
// of the build's levels runs here. builtin() and isa_level() stop the process then, so programs ask
// first. Loads nothing.
Status ready();

// The level v4-amx: the kernels of v4, with products of bf16 added up as AMX does. The best one
// where there is AMX. A processor of v4 without it gives the same bits, slower: where the
// environment or the master of its job asks for them.
inline constexpr int kTileLevel = 5;

// "v2" to "v4", "v4-amx".
std::string isa_name(int level);

// Whether limit_isa can give this process exactly that level.
bool can_compute_at(int level);

// From now on limit_isa and set_cache_sizes are refused: this process has a kernel, or a session
// whose other processes were told of the level. Until then both change what is loaded, so that a
// worker, which has it loaded when it joins, takes the level of its master.
void settle();

// Whether products of bf16 are added up as AMX does. Kernels ask: until the first one has,
// limit_isa changes between the two levels of x86-64-v4 even once there are kernels.
bool adds_by_tiles();

// Whether this process may use AMX for bf16.
bool has_tiles();

// What kernels compute with, for the numeric profile: "oneDNN 2.6.3, Eigen 3.4.0". Loads nothing.
std::string libraries();

}  // namespace troupe::ops
