// Options for stages that decode bytes: features of tf.Example records, pictures.
#pragma once

#include <cstdint>
#include <string>

#include "core/dtype.hpp"
#include "core/shape.hpp"
#include "core/tensor.hpp"

namespace troupe::data {

// A feature of a tf.Example record, which becomes a component.
struct Feature {
  std::string name;
  // f32 is read from a list of floats; i64, i32, u8 and bool from a list of int64; string from a
  // list of bytes. A number out of the dtype's range is an error.
  DType dtype = DType::f32;
  // Dimension 0 may be unknown: the length of the record's list then determines it.
  PartialShape shape = PartialShape::scalar();
  // The value for records without this feature: one element, which is repeated, or as many as the
  // shape has. Undefined: such a record is an error.
  Tensor missing = {};
  // The elements are the bytes of a single string, little-endian; for any numeric dtype.
  bool raw = false;
};

// How a picture of another aspect ratio is resized: stretched, or cropped to its center.
enum class Fit { stretch, crop };

// How a PNG or JPEG file becomes a component [height, width, channels].
struct ImageOptions {
  // Pictures of another size are resized: each pixel is a weighted mean of those that it covers.
  // Both 0: pictures keep their sizes.
  std::int64_t height = 0, width = 0;
  std::int64_t channels = 3;  // 1: grey; 3: RGB; 4: RGB and opacity
  DType dtype = DType::f32;   // f32 in [0,1], or u8
  Fit fit = Fit::stretch;
  // A larger picture is an error; no memory is allocated for it.
  std::int64_t most_pixels = std::int64_t{1} << 26;
};

}  // namespace troupe::data
