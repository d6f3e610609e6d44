// What the environment says of how GPUs compute: 1, or 0 (default). invalid_argument for another
// value.
#pragma once

#include "core/status.hpp"

namespace troupe::cuda {

// TROUPE_CUDA_TF32: whether NVIDIA's libraries may round f32 to TF32, with 10 bits behind the
// point, before they multiply. Part of the numeric profile.
Expected<bool> allows_tf32();

// TROUPE_CUDA_TUNE: whether ways to compute the same are measured, rather than the first one taken
// that a library names. Part of the numeric profile.
Expected<bool> measures_choices();

// TROUPE_CUDA_SYNC: whether the host waits for each kernel and copy.
Expected<bool> waits_for_each();

}  // namespace troupe::cuda
