// Sources of labelled pictures; other sources are in ops/data/examples.hpp and ops/data/files.hpp.
//
//   auto [x, y] =
//   data::idx("data/mnist").shuffle(60'000).batch(128).repeat().prefetch(2).outputs(g);
#pragma once

#include <cstdint>
#include <string_view>

#include "ops/data/examples.hpp"
#include "ops/data/files.hpp"
#include "ops/data/record_writer.hpp"
#include "ops/data/tales.hpp"

namespace troupe::data {

enum class Split { train, test };

// Height and width of the pictures. Opening a file with another size fails.
struct PictureSize {
  std::int64_t height = 28, width = 28;
};

// Pictures f32 [height,width,1] in [0,1] and labels i64 [], from MNIST's four files, or files of
// the same format and names, in `folder`, plain or with .gz appended: train-images-idx3-ubyte,
// train-labels-idx1-ubyte, t10k-....
FixedExamples<2> idx(std::string_view folder, Split split = Split::train,
                     const PictureSize& size = {});

// Generated digits (ops/data/digits.hpp), in the format of MNIST. Train and test pictures never
// coincide.
FixedExamples<2> digits(std::int64_t count = 60'000, Split split = Split::train,
                        std::uint64_t seed = 1);

// Pictures f32 [32,32,3] in [0,1] and labels i64 [], from the binary version of CIFAR-10
// (https://www.cs.toronto.edu/~kriz/cifar.html): data_batch_1.bin to data_batch_5.bin, or
// test_batch.bin, in `folder`. A record is a label, 0 to 9, and 1024 bytes each of red, green,
// blue.
FixedExamples<2> cifar10(std::string_view folder, Split split = Split::train);

// Generated pictures of shapes (ops/data/shapes.hpp), in the format of CIFAR-10. Train and test
// pictures never coincide.
FixedExamples<2> shapes(std::int64_t count = 50'000, Split split = Split::train,
                        std::uint64_t seed = 1);

}  // namespace troupe::data
