// Pools over one and three dimensions, made of max_pool() and avg_pool() (generated.hpp), which are
// those over two. Gradients of any order. f32 or f64.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "ops/api/generated.hpp"

namespace troupe {

struct Pool1dOptions {
  std::int64_t stride = 0;        // 0: that of the window's size, so that windows do not overlap
  std::string padding = "VALID";  // SAME, VALID
};
// The largest element, or the mean, of each window of `size` steps of sequences x [n,w,c]:
// [n,w',c]. Padding never wins and is not counted.
Output max_pool1d(Output x, std::int64_t size, const Pool1dOptions& options = {},
                  Site site = Site::here());
Output avg_pool1d(Output x, std::int64_t size, const Pool1dOptions& options = {},
                  Site site = Site::here());

struct Pool3dOptions {
  std::vector<std::int64_t> strides =
      {};                         // depth, height, width; empty: those of the window's size
  std::string padding = "VALID";  // SAME, VALID
};
// The same over windows of size [depth, height, width] of volumes x [n,d,h,w,c]: [n,d',h',w',c]. Of
// equal maxima the first in window order, plane by plane, takes the gradient.
Output max_pool3d(Output x, const std::vector<std::int64_t>& size,
                  const Pool3dOptions& options = {}, Site site = Site::here());
Output avg_pool3d(Output x, const std::vector<std::int64_t>& size,
                  const Pool3dOptions& options = {}, Site site = Site::here());

}  // namespace troupe
