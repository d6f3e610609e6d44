// What stages of datasets make of bytes: features of tf.Example records, pictures.
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
  // f32 is read from a list of floats, i64, i32, u8 and bool from one of int64s, string from one of
  // bytes. A number that the dtype cannot hold is an error.
  DType dtype = DType::f32;
  // Dimension 0 may be unknown: it is then as long as the list of the record.
  PartialShape shape = PartialShape::scalar();
  // The value for records without this feature: one element for all of the shape, or as many as it
  // has. Undefined: such a record is an error.
  Tensor missing = {};
  // The elements are the bytes of a single string, little-endian: any dtype of numbers.
  bool raw = false;
};

// How a picture of another aspect ratio is brought to a size: stretched, or its middle cut out.
enum class Fit { stretch, crop };

// How a PNG or JPEG becomes a component [height, width, channels].
struct ImageOptions {
  // Pictures of another size are resized: each pixel is a weighted mean of those that it covers.
  // 0, both: each as large as it is.
  std::int64_t height = 0, width = 0;
  std::int64_t channels = 3;  // 1: grey; 3: red, green, blue; 4: and opacity
  DType dtype = DType::f32;   // f32 in [0,1], or u8
  Fit fit = Fit::stretch;
  // A picture that says it has more is refused before memory is taken for it.
  std::int64_t most_pixels = std::int64_t{1} << 26;
};

}  // namespace troupe::data
