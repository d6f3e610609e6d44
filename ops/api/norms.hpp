// Normalisation beside layer_norm(), group_norm() and fused_batch_norm() (generated.hpp), made of
// other ops. f16 and bf16 are computed in f32. Squares are those of the elements themselves: in f32
// they overflow above 1e19, where the result of rms_norm() is 0, as PyTorch's; the norms of
// generated.hpp normalise such elements, too.
#pragma once

#include "ops/api/generated.hpp"

namespace troupe {

using NormOptions = GroupNormOptions;  // epsilon: added to the variance, or to the mean square

// Instance normalisation (Ulyanov et al., 2016): group_norm() with a group for each channel. The
// number of channels must be known.
Output instance_norm(Output x, Output scale, Output offset, const NormOptions& options = {},
                     Site site = Site::here());
// x / sqrt(mean of x^2 over the last dimension + epsilon) * scale (Zhang and Sennrich, 2019).
Output rms_norm(Output x, Output scale, const NormOptions& options = {}, Site site = Site::here());

struct LocalResponseOptions {
  std::int64_t radius = 5;  // 2 * radius + 1 channels
  double bias = 1, alpha = 1, beta = 0.5;
};
// x / (bias + alpha * sum of x^2 over the channels within `radius`)^beta for x [..., c], as
// TensorFlow's; PyTorch's, of `size` channels, is radius = size / 2 and alpha / size (Krizhevsky et
// al., 2012). The number of channels must be known.
Output local_response_norm(Output x, const LocalResponseOptions& options = {},
                           Site site = Site::here());

}  // namespace troupe
