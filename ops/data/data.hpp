// Sources of pictures with labels; other ones are in ops/data/examples.hpp.
//
//   auto [x, y] =
//   data::idx("data/mnist").shuffle(60'000).batch(128).repeat().prefetch(2).outputs(g);
#pragma once

#include <cstdint>
#include <string_view>

#include "ops/data/examples.hpp"

namespace troupe::data {

enum class Split { train, test };

// Height and width of pictures. A file with others is refused when it is opened.
struct PictureSize {
  std::int64_t height = 28, width = 28;
};

// Pictures f32 [height,width,1] in [0,1] and labels i64 [], of the four files of MNIST and of what
// has their form, in `folder`, plain or with .gz appended: train-images-idx3-ubyte,
// train-labels-idx1-ubyte, t10k-....
FixedExamples<2> idx(std::string_view folder, Split split = Split::train,
                     const PictureSize& size = {});

// Digits drawn by a program (ops/data/digits.hpp), in the form of MNIST. Train and test never show
// the same picture.
FixedExamples<2> digits(std::int64_t count = 60'000, Split split = Split::train,
                        std::uint64_t seed = 1);

// Pictures f32 [32,32,3] in [0,1] and labels i64 [], of the binary version of CIFAR-10
// (https://www.cs.toronto.edu/~kriz/cifar.html): data_batch_1.bin to data_batch_5.bin, or
// test_batch.bin, in `folder`. Records of a label, 0 to 9, and 1024 bytes each of red, green, blue.
FixedExamples<2> cifar10(std::string_view folder, Split split = Split::train);

// Pictures of shapes, drawn by a program (ops/data/shapes.hpp), in the form of CIFAR-10. Train and
// test never show the same one.
FixedExamples<2> shapes(std::int64_t count = 50'000, Split split = Split::train,
                        std::uint64_t seed = 1);

}  // namespace troupe::data
