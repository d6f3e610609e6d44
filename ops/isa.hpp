// Which kernels this process takes (ops::builtin() and ops::limit_isa() are in ops/op.hpp): the
// best that the processor, this build and limit_isa allow, or exactly the level that the
// environment names (TROUPE_ISA=v2, v3 or v4), to compare the levels on one machine.
#pragma once

#include <string>

#include "core/status.hpp"

namespace troupe::ops {

// Why there are no kernels: TROUPE_ISA names a level that processor, build or limit lack, or none
// of the build's levels runs here. builtin() and isa_level() stop the process then, so programs ask
// first. Loads nothing.
Status ready();

// What kernels compute with, for the numeric profile: "oneDNN 2.6.3, Eigen 3.4.0". Loads nothing.
std::string libraries();

}  // namespace troupe::ops
