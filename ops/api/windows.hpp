// Overlapping parts of sequences and pictures, and the spectra of such parts. Written with a few
// ops each, so that gradients of any order come with them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "ops/api/generated.hpp"

namespace troupe {

// All windows of `size` places along `axis` of x, `step` places apart, as torch.Tensor.unfold and
// tf.signal.frame have them: in place of the dimension, their number; behind the last dimension,
// their elements. What is left at the end is in no window. Throws Error unless the dimension is
// known and no smaller than a window.
Output unfold(Output x, std::int64_t axis, std::int64_t size, std::int64_t step = 1,
              Site site = Site::here());

struct PatchesOptions {
  std::vector<std::int64_t> strides = {1, 1};  // height, width
  std::string padding = "VALID";               // SAME, VALID
  std::vector<std::int64_t> dilations = {1, 1};
};
// All patches [height, width] of pictures x [n, h, w, c], in rows: [n, h', w', height * width * c],
// as tf.image.extract_patches. SAME pads with zeros, as conv2d() does; the product with a filter [h
// * w * c, k] is that of conv2d(). Throws Error unless all dimensions of x but n are known.
Output extract_patches(Output x, const std::vector<std::int64_t>& size,
                       const PatchesOptions& options = {}, Site site = Site::here());

// The Hann window of n places for spectra, 1/2 - cos(2 pi i / n) / 2; a single place is 1.
Output hann_window(GraphBuilder& g, std::int64_t n, DType dtype = DType::f32,
                   Site site = Site::here());

struct StftOptions {
  std::int64_t fft_length = 0;  // 0: that of a frame; frames are filled up with zeros
  Output window = {};           // [frame_length], of the dtype of x; none given: Hann's
};
// The spectra of the frames of x [..., time], `step` places apart, each times the window: [...,
// frames, fft_length / 2 + 1], complex. As tf.signal.stft and, transposed, torch.stft with
// center=False; mirror_pad() x by half a frame for center=True. f32 or f64.
Output stft(Output x, std::int64_t frame_length, std::int64_t step, const StftOptions& options = {},
            Site site = Site::here());

}  // namespace troupe
