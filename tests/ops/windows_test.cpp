// Windows of sequences and pictures and their spectra. The numbers are PyTorch's.
#include <doctest/doctest.h>

#include <cmath>
#include <complex>
#include <numeric>
#include <vector>

#include "tests/misuse.hpp"
#include "tests/ops/api_interpreter.hpp"

using namespace troupe;
using troupe::test::Interpreter;

namespace {

// 1, 2, 3, ...
Output counted(Graph& g, const Shape& shape) {
  std::vector<double> values(std::size_t(shape.elements()));
  std::iota(values.begin(), values.end(), 1);
  return constant(g, Tensor::of<double>(shape, values));
}
std::vector<double> read_windows(Graph& g, const Output& y) {
  const Tensor t = Interpreter(g).run({y})[0];
  return {t.span<double>().begin(), t.span<double>().end()};
}

}  // namespace

TEST_CASE("unfold has the windows along a dimension, which overlap") {
  Graph g;
  const Output x = counted(g, {7}), y = unfold(x, 0, 3, 2);
  CHECK(y.shape() == PartialShape{3, 3});
  CHECK(read_windows(g, y) == std::vector<double>{1, 2, 3, 3, 4, 5, 5, 6, 7});
  CHECK(read_windows(g, gradients(y, {x})[0]) == std::vector<double>{1, 1, 2, 1, 2, 1, 1});
  // Of the first of two dimensions: the elements of a window are behind the last.
  const Output z = unfold(counted(g, {4, 2}), -2, 3);
  CHECK(z.shape() == PartialShape{2, 2, 3});
  CHECK(read_windows(g, z) == std::vector<double>{1, 3, 5, 2, 4, 6, 3, 5, 7, 4, 6, 8});
  CHECK(unfold(placeholder<float>(g, {-1, 9}), 1, 9).shape().rank() == 3);

  const Output open = placeholder<float>(g, {-1, 9});
  test::check_refused({
      {"dimension 0", [&] { unfold(open, 0, 3); }},
      {"does not fit", [&] { unfold(x, 0, 8); }},
      {"0 is no size or step", [&] { unfold(x, 0, 0); }},
      {"0 is no size or step", [&] { unfold(x, 0, 3, 0); }},
      {"no dimension 1", [&] { unfold(x, 1, 3); }},
  });
}

TEST_CASE("patches of pictures are rows, whose product with a filter is a convolution") {
  Graph g;
  const Output x = counted(g, {1, 3, 4, 2});
  const Output y = extract_patches(x, {2, 2}, {.strides = {1, 2}});
  CHECK(y.shape() == PartialShape{1, 2, 2, 8});
  CHECK(read_windows(g, y) == std::vector<double>{1,  2,  3,  4,  9,  10, 11, 12, 5,  6,  7,
                                                  8,  13, 14, 15, 16, 9,  10, 11, 12, 17, 18,
                                                  19, 20, 13, 14, 15, 16, 21, 22, 23, 24});

  const Output filter = counted(g, {3, 2, 2, 5});
  for (const char* padding : {"SAME", "VALID"})
    for (const std::vector<std::int64_t>& by : {std::vector<std::int64_t>{1, 1}, {2, 3}})
      for (const std::vector<std::int64_t>& apart : {std::vector<std::int64_t>{1, 1}, {2, 3}}) {
        CAPTURE(padding);
        CAPTURE(by[0]);
        CAPTURE(apart[0]);
        const Output picture = counted(g, {2, 6, 7, 2});
        const Output rows = extract_patches(
            picture, {3, 2}, {.strides = by, .padding = padding, .dilations = apart});
        const Output product = matmul(reshape(rows, {-1, 12}), reshape(filter, {12, 5}));
        const Output want =
            conv2d(picture, filter, {.strides = by, .padding = padding, .dilations = apart});
        PartialShape shape = want.shape();
        shape.set_dim(3, 12);
        CHECK(rows.shape() == shape);
        CHECK(read_windows(g, product) == read_windows(g, want));
        CHECK(read_windows(g, gradients(product, {picture})[0]) ==
              read_windows(g, gradients(want, {picture})[0]));
      }
  CHECK(extract_patches(placeholder<float>(g, {-1, 4, 4, 3}), {2, 2}).shape().rank() == 4);

  const Output open = placeholder<float>(g, {1, -1, 4, 3});
  test::check_refused({
      {"[n,h,w,c]",
       [&] {
         extract_patches(filter[0], {2, 2});
       }},
      {"dimension 1",
       [&] {
         extract_patches(open, {2, 2});
       }},
      {"height and width", [&] { extract_patches(x, {2}); }},
      {"not SAME or VALID",
       [&] {
         extract_patches(x, {2, 2}, {.padding = "same"});
       }},
      {"does not fit",
       [&] {
         extract_patches(x, {4, 2});
       }},
      {"0 is no size or step",
       [&] {
         extract_patches(x, {2, 0});
       }},
  });
}

TEST_CASE("stft has the spectra of frames times a window") {
  Graph g;
  const Output x = constant(g, Tensor::of<double>(Shape{8}, {1, -2, 3, 0.5, 2, -1, 4, 0}));
  const Output y = stft(x, 4, 2);
  CHECK(y.shape() == PartialShape{3, 3});
  const auto near = [&](const Output& is, const std::vector<double>& want) {
    const std::vector<double> values = read_windows(g, is);
    REQUIRE(values.size() == want.size());
    for (std::size_t i = 0; i < want.size(); ++i)
      CHECK(values[i] == doctest::Approx(want[i]).scale(1).epsilon(1e-12));
  };
  near(real(y), {2.25, -3, 3.75, 1.75, -2, 2.25, 3.5, -4, 4.5});
  near(imag(y), {0, 1.25, 0, 0, -0.75, 0, 0, 0.5, 0});
  // torch.stft(x, 8, 3, window=torch.ones(8), center=True), transposed.
  const Output padded = mirror_pad(x, {{4, 4}});
  near(abs(stft(padded, 8, 3, {.window = ones(g, {8}, DType::f64)})),
       {6, 4.535533905932738, 3, 2.5355339059327378, 12, 5.5, 3.4754031600299538, 4.272001872658765,
        2.5340822550291873, 14.5, 11.5, 1.7688074107828577, 2.692582403567252, 2.715017558609823,
        14.5});
  CHECK(stft(placeholder<float>(g, {-1, 400}), 100, 50, {.fft_length = 128}).shape()[2] == 65);
  // As torch.hann_window(1): frames of one place are what they are.
  near(hann_window(g, 1, DType::f64), {1});
  near(real(stft(x, 1, 4)), {1, 2});
  // A window of one place is none of four, even where only a run knows it.
  const Output open = placeholder(g, DType::f64, {-1});
  const Output spectra = real(stft(x, 4, 2, {.window = open}));
  CHECK(Interpreter(g).failure_of({spectra}, {{open.node(), Tensor::of<double>({1}, {1})}}) != "");
  // The frames are halves of a Hann window apart, whose sum is 1.
  near(gradients(sum(real(gather(y, constant(g, 0), 1))), {x})[0], {0, 0.5, 1, 1, 1, 1, 1, 0.5});

  test::check_refused({
      {"fft_length", [&] { stft(x, 4, 2, {.fft_length = 3}); }},
      {"the window has shape", [&] { stft(x, 4, 2, {.window = ones(g, {3}, DType::f64)}); }},
      {"does not fit", [&] { stft(x, 9, 2); }},
      {"floating",
       [&] {
         stft(constant(g, {1, 2, 3}), 2, 1);
       }},
      {"hann_window", [&] { hann_window(g, 0); }},
  });
}
