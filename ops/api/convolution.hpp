// Convolutions beside conv2d() (generated.hpp), which they are made of: over one and three
// dimensions, transposed, depthwise. All have gradients of any order. f32, f64, f16 or bf16.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "ops/api/generated.hpp"

namespace troupe {

struct Conv1dOptions {
  std::int64_t stride = 1;
  std::string padding = "SAME";                      // SAME, VALID, EXPLICIT
  std::vector<std::int64_t> explicit_paddings = {};  // left, right
  std::int64_t dilation = 1, groups = 1;
};
// Convolution of sequences x [n,w,c] with filter [w,c/groups,k] to [n,w',k]. With the padding
// EXPLICIT and (size - 1) * dilation on the left, no output sees what comes after it.
Output conv1d(Output x, Output filter, const Conv1dOptions& options = {}, Site site = Site::here());

struct Conv3dOptions {
  std::vector<std::int64_t> strides = {1, 1, 1};     // depth, height, width
  std::string padding = "SAME";                      // SAME, VALID, EXPLICIT
  std::vector<std::int64_t> explicit_paddings = {};  // front, back, top, bottom, left, right
  std::vector<std::int64_t> dilations = {1, 1, 1};
  std::int64_t groups = 1;
};
// Convolution of volumes x [n,d,h,w,c] with filter [d,h,w,c/groups,k] to [n,d',h',w',k]: a
// convolution of planes, whose channels are those of all planes below the filter. It takes d times
// the memory of x for that. Throws Error for SAME with a depth that is neither known nor passed in
// steps of 1.
Output conv3d(Output x, Output filter, const Conv3dOptions& options = {}, Site site = Site::here());

struct ConvTranspose1dOptions {
  std::int64_t stride = 1;
  std::string padding = "SAME";                      // SAME, VALID, EXPLICIT
  std::vector<std::int64_t> explicit_paddings = {};  // left, right
  std::int64_t dilation = 1, groups = 1;
  std::int64_t output_padding = 0;
  std::int64_t output_size = 0;  // above 0: instead of output_padding
};
// conv2d_transpose() of sequences: x [n,w,c] and filter [w,k/groups,c] to [n,w',k].
Output conv1d_transpose(Output x, Output filter, const ConvTranspose1dOptions& options = {},
                        Site site = Site::here());

struct ConvTranspose2dOptions {
  std::vector<std::int64_t> strides = {1, 1};
  std::string padding = "SAME";                      // SAME, VALID, EXPLICIT
  std::vector<std::int64_t> explicit_paddings = {};  // top, bottom, left, right
  std::vector<std::int64_t> dilations = {1, 1};
  std::int64_t groups = 1;
  std::vector<std::int64_t> output_padding = {0, 0};  // added below and on the right
  std::vector<std::int64_t> output_size = {};         // height and width: instead of output_padding
};
// Transposed convolution of x [n,h,w,c] with filter [h,w,k/groups,c] to [n,h',w',k]: the gradient
// of the conv2d() with these options that takes [n,h',w',k] to [n,h,w,c]. Several sizes h' go to
// one h; the size is, with reach = (size - 1) * dilation + 1,
//   SAME: h * stride       VALID, EXPLICIT: (h - 1) * stride + reach - top - bottom +
//   output_padding
// unless output_size tells it. Throws Error where it is known to be none of them.
Output conv2d_transpose(Output x, Output filter, const ConvTranspose2dOptions& options = {},
                        Site site = Site::here());

struct ConvTranspose3dOptions {
  std::vector<std::int64_t> strides = {1, 1, 1};     // depth, height, width
  std::string padding = "SAME";                      // SAME, VALID, EXPLICIT
  std::vector<std::int64_t> explicit_paddings = {};  // front, back, top, bottom, left, right
  std::vector<std::int64_t> dilations = {1, 1, 1};
  std::int64_t groups = 1;
  std::vector<std::int64_t> output_padding = {0, 0, 0};  // added at the back, below, on the right
  std::vector<std::int64_t> output_size = {};            // instead of output_padding
};
// conv2d_transpose() of volumes: x [n,d,h,w,c] and filter [d,h,w,k/groups,c] to [n,d',h',w',k], the
// gradient of the conv3d() with these options. With SAME and a stride along the depth, the depth of
// x must be known, or output_size given.
Output conv3d_transpose(Output x, Output filter, const ConvTranspose3dOptions& options = {},
                        Site site = Site::here());

struct DepthwiseConv2dOptions {
  std::vector<std::int64_t> strides = {1, 1};
  std::string padding = "SAME";
  std::vector<std::int64_t> explicit_paddings = {};
  std::vector<std::int64_t> dilations = {1, 1};
};
// Each channel of x [n,h,w,c] with its own m filters, [h,w,c,m]: [n,h',w',c*m], where channel i
// gives the outputs i*m to i*m + m - 1.
Output depthwise_conv2d(Output x, Output filter, const DepthwiseConv2dOptions& options = {},
                        Site site = Site::here());

}  // namespace troupe
