// Input pipelines as a client writes them.
//
//   auto [x, y] =
//   data::idx("data/mnist").shuffle(60'000).batch(128).repeat().prefetch(2).outputs(g);
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "graph/builder.hpp"
#include "ops/data/examples.hpp"

namespace troupe::data {

enum class Split { train, test };

// A description of a pipeline over (image, label) pairs; each function returns the description with
// one thing changed. Its stages have a fixed order, whatever that of the calls: take, shuffle,
// batch, repeat, prefetch. Nothing is read before a run, and what is read is read where the
// pipeline runs. Stages in any order are those of examples().
class Images {
 public:
  // Shuffles anew in each epoch, drawing from a window of that many examples.
  Images shuffle(std::int64_t window) const;
  Images batch(std::int64_t size) const;
  // That many epochs; -1: for ever.
  Images repeat(std::int64_t epochs = -1) const;
  // Elements made ahead of their use.
  Images prefetch(std::int64_t elements) const;
  Images seed(std::uint64_t seed) const;  // of the shuffling; the graph's unless given
  // Examples [first, first + count) only; count 0: all from `first` on.
  Images take(std::int64_t count, std::int64_t first = 0) const;
  // Whether an epoch ends with a short batch when its length is no multiple of the batch. Unless
  // told, a pipeline that never ends drops it, so that shapes are known, and one that does keeps
  // it.
  Images drop_remainder(bool drop) const;

  // Height and width of the pictures; 28 x 28 unless told. A file with others is refused when it is
  // opened.
  Images size(std::int64_t height, std::int64_t width) const;

  // The pictures and labels of take() and size() alone, one at a time, for stages of any kind.
  Examples examples() const;

  // Images f32 [batch,height,width,1] in [0,1] and labels i64 [batch], of one element a run.
  // Throws Error for numbers out of range.
  std::array<Output, 2> outputs(GraphBuilder& g, std::string_view name = "data",
                                Site site = Site::here()) const;

 private:
  friend Images idx(std::string_view folder, Split split);
  friend Images digits(std::int64_t count, Split split, std::uint64_t seed);
  template <class F>
  Images with(F change) const;

  std::string source_;
  std::vector<std::string> files_;
  std::int64_t height_ = 28, width_ = 28;
  std::int64_t batch_ = 1, shuffle_ = 0, repeat_ = 1, prefetch_ = 0, first_ = 0, limit_ = 0;
  std::uint64_t digits_seed_ = 0;
  std::optional<std::uint64_t> seed_;
  std::optional<bool> drop_remainder_;
};

// The four files of MNIST and of what has its form, in `folder`, plain or with .gz appended:
// train-images-idx3-ubyte, train-labels-idx1-ubyte, t10k-....
Images idx(std::string_view folder, Split split = Split::train);

// Digits drawn by a program (ops/data/digits.hpp). Train and test never show the same picture.
Images digits(std::int64_t count = 60'000, Split split = Split::train, std::uint64_t seed = 1);

// Pictures f32 [32,32,3] in [0,1] and labels i64 [], of the binary version of CIFAR-10
// (https://www.cs.toronto.edu/~kriz/cifar.html): data_batch_1.bin to data_batch_5.bin, or
// test_batch.bin, in `folder`. Records of a label, 0 to 9, and 1024 bytes each of red, green, blue.
Examples cifar10(std::string_view folder, Split split = Split::train);

// Pictures of shapes, drawn by a program (ops/data/shapes.hpp), in the form of CIFAR-10. Train and
// test never show the same one.
Examples shapes(std::int64_t count = 50'000, Split split = Split::train, std::uint64_t seed = 1);

}  // namespace troupe::data
