// How exactly NVIDIA's libraries are to compute.
#pragma once

#include "core/status.hpp"

namespace troupe::cuda {

// Whether they may round f32 to TF32, with 10 bits behind the point, before they multiply: what
// TROUPE_CUDA_TF32 says, 1 or 0 (default). Part of the numeric profile. invalid_argument for
// another value.
Expected<bool> allows_tf32();

}  // namespace troupe::cuda
