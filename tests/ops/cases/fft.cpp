// Fourier transforms against sums of their definition, with their gradients.
#include <cmath>
#include <complex>
#include <limits>

#include "tests/ops/kernels/conformance.hpp"

namespace troupe::test {
namespace {

using FftElement = std::complex<double>;

constexpr double kFftNan = std::numeric_limits<double>::quiet_NaN();

// y = the transform of dimension `axis` of x, by its definition.
Tensor dft_of(const Tensor& x, int axis, int sign, double scale) {
  const std::int64_t n = x.dim(axis), inner = x.shape().elements(axis + 1, x.rank());
  Tensor y = Tensor::zeros(DType::c128, x.shape()).value();
  for (std::int64_t i = 0; i < x.elements(); ++i) {
    const std::int64_t k = i / inner % n, first = i - k * inner;
    for (std::int64_t j = 0; j < n; ++j)
      y.mutable_data<FftElement>()[i] +=
          x.data<FftElement>()[first + j * inner] *
          std::polar(scale, sign * 2 * M_PI * double(j * k % n) / double(n));
  }
  return y;
}
Tensor dft_of(Tensor x, int rank, bool inverse, const std::string& norm = "backward") {
  for (int axis = x.rank() - rank; axis < x.rank(); ++axis) {
    const auto n = double(x.dim(axis));
    const double scale = norm == "ortho"                   ? 1 / std::sqrt(n)
                         : inverse == (norm == "backward") ? 1 / n
                                                           : 1;
    x = dft_of(x, axis, inverse ? 1 : -1, scale);
  }
  return x;
}
Tensor as_complex(const Tensor& x) {
  Tensor z = Tensor::make(DType::c128, x.shape()).value();
  std::copy_n(x.data<double>(), x.elements(), z.mutable_data<FftElement>());
  return z;
}
// The first `columns` elements of the last dimension, or zeros behind it.
template <class T>
Tensor fitted_to(const Tensor& x, std::int64_t columns) {
  Shape shape = x.shape();
  const int last = x.rank() - 1;
  const std::int64_t width = x.dim(last);
  shape.set_dim(last, columns);
  Tensor y = Tensor::zeros(dtype_of<T>, shape).value();
  for (std::int64_t r = 0; r < x.shape().elements(0, last); ++r)
    std::copy_n(x.data<T>() + r * width, std::min(width, columns),
                y.mutable_data<T>() + r * columns);
  return y;
}
Tensor first_half(const Tensor& z) { return fitted_to<FftElement>(z, z.dim(z.rank() - 1) / 2 + 1); }

std::string name_of(const std::string& prefix, int rank) {
  return prefix + "FFT" + (rank == 1 ? "" : std::to_string(rank) + "D");
}

const AddCases complex_transforms([] {
  Cases rows;
  const std::vector<Shape> shapes[] = {
      // Lengths of every small radix, of a large prime, of one element.
      {{1}, {2, 2}, {3}, {2, 4}, {5}, {6}, {7}, {2, 8}, {13}, {17}, {2, 1, 34}},
      {{2, 3}, {2, 4, 1}, {5, 4}},
      {{2, 3, 2}, {2, 1, 2, 4}}};
  for (int rank = 1; rank <= 3; ++rank)
    for (const bool inverse : {false, true}) {
      const std::string op = name_of(inverse ? "I" : "", rank);
      for (const Shape& shape : shapes[rank - 1]) {
        const Tensor x = any_complex(shape);
        rows.push_back(
            {.op = op, .inputs = {x}, .differentiate = {0}, .want = {dft_of(x, rank, inverse)}});
      }
      for (const char* norm : {"ortho", "forward"}) {
        const Tensor x = any_complex(shapes[rank - 1].back());
        rows.push_back({.op = op,
                        .inputs = {x},
                        .attrs = {{"norm", norm}},
                        .differentiate = {0},
                        .want = {dft_of(x, rank, inverse, norm)}});
      }
      Shape empty;
      for (int i = 0; i < rank; ++i) empty.append(i == 0 ? 0 : 2);
      rows.push_back({.op = op, .inputs = {any_complex(empty)}, .want = {any_complex(empty)}});
      rows.push_back({.op = op, .inputs = {any_complex({})}, .error = "x is []"});
      rows.push_back({.op = op, .inputs = {any({2, 2, 2})}, .error = "x is f64"});
      rows.push_back({.op = op,
                      .inputs = {any_complex({2, 2, 2})},
                      .attrs = {{"norm", "none"}},
                      .error = "norm"});
    }
  // Several chunks of rows, and of columns; a length with a large prime factor.
  rows.push_back({.op = "FFT", .inputs = {any_complex({90, 1000})}});
  rows.push_back({.op = "IFFT2D", .inputs = {any_complex({300, 202})}});
  const Tensor prime = any_complex({997});
  rows.push_back({.op = "FFT", .inputs = {prime}, .want = {dft_of(prime, 1, false)}});
  rows.push_back({.op = "FFT",
                  .inputs = {c64({4}, {1, {0, 2}, -1, {0, -2}})},
                  .want = {c64({4}, {0, 6, 0, -2})}});
  // Not a number in every element of its own row alone.
  rows.push_back(
      {.op = "FFT",
       .inputs = {c128({2, 3}, {1, {kFftNan, 0}, 1, 1, 1, 1})},
       .want = {
           c128({2, 3}, {{kFftNan, kFftNan}, {kFftNan, kFftNan}, {kFftNan, kFftNan}, 3, 0, 0})}});
  return rows;
});

const AddCases real_transforms([] {
  Cases rows;
  const std::vector<Shape> shapes[] = {{{1}, {2}, {2, 3}, {4}, {2, 5}, {6}, {17}},
                                       {{2, 3}, {3, 4}, {2, 2, 1}},
                                       {{2, 3, 2}, {1, 2, 2, 3}}};
  for (int rank = 1; rank <= 3; ++rank) {
    const std::string forward = name_of("R", rank), back = name_of("IR", rank);
    for (const Shape& shape : shapes[rank - 1])
      for (const char* norm : {"backward", "ortho", "forward"}) {
        const Tensor x = any(shape), whole = dft_of(as_complex(x), rank, false, norm);
        std::vector<std::int64_t> n(shape.dims().end() - rank, shape.dims().end());
        rows.push_back({.op = forward,
                        .inputs = {x},
                        .attrs = {{"norm", norm}},
                        .differentiate = {0},
                        .want = {first_half(whole)}});
        rows.push_back({.op = back,
                        .inputs = {first_half(whole)},
                        .attrs = {{"fft_length", n}, {"norm", norm}},
                        .differentiate = {0},
                        .want = {x}});
        // Of any numbers, not only of what a transform gives.
        rows.push_back({.op = back,
                        .inputs = {any_complex(first_half(whole).shape())},
                        .attrs = {{"fft_length", n}, {"norm", norm}},
                        .differentiate = {0}});
      }
    // Without fft_length, and with shorter and longer ones.
    Shape shape;
    for (int i = 0; i < rank; ++i) shape.append(3 + i % 2);
    std::vector<std::int64_t> longer, shorter;
    for (int i = 0; i < rank; ++i) longer.push_back(5 + i), shorter.push_back(2);
    for (const auto& n : {std::vector<std::int64_t>(), longer, shorter}) {
      rows.push_back({.op = forward,
                      .inputs = {any(shape)},
                      .attrs = {{"fft_length", n}},
                      .differentiate = {0}});
      rows.push_back({.op = back,
                      .inputs = {any_complex(shape)},
                      .attrs = {{"fft_length", n}},
                      .differentiate = {0}});
    }
    const std::vector<std::int64_t> none(std::size_t(rank), 0);
    for (const std::string& op : {forward, back}) {
      const Tensor x = op == forward ? any(shape) : any_complex(shape);
      const auto with = [&](std::vector<std::int64_t> n, std::string error) {
        rows.push_back({.op = op,
                        .inputs = {x},
                        .attrs = {{"fft_length", std::move(n)}},
                        .error = std::move(error)});
      };
      auto bad = longer;
      bad.back() = -1;
      with(bad, "fft_length -1 is negative");
      bad.back() = std::int64_t{1} << 40;
      with(bad, "a transform of 1099511627776 elements; it may have 268435456 at most");
      bad.back() = 10'000'019;
      with(bad, "10000019 elements, which has a prime factor above 13; it may have 4194304");
      bad.push_back(1);
      with(bad, "fft_length has");
      rows.push_back({.op = op, .inputs = {x}, .attrs = {{"fft_length", none}}});
      rows.push_back(
          {.op = op, .inputs = {op == forward ? any({}) : any_complex({})}, .error = "x is []"});
      Shape empty = shape;
      empty.set_dim(rank - 1, 0);
      rows.push_back({.op = op, .inputs = {op == forward ? any(empty) : any_complex(empty)}});
      // Nothing, filled up with zeros.
      rows.push_back({.op = op,
                      .inputs = {op == forward ? any(empty) : any_complex(empty)},
                      .attrs = {{"fft_length", longer}}});
    }
    rows.push_back({.op = forward, .inputs = {any_complex(shape)}, .error = "x is c128"});
    rows.push_back({.op = back, .inputs = {any(shape)}, .error = "x is f64"});
    const Tensor dims = Tensor::of<std::int64_t>(Shape{rank}, shape.dims());
    rows.push_back({.op = forward + "Grad",
                    .inputs = {any_complex(first_half(as_complex(any(shape))).shape()), dims},
                    .differentiate = {0}});
    Shape whole = shape;
    whole.set_dim(rank - 1, 2 * (shape.dim(rank - 1) - 1));
    rows.push_back({.op = back + "Grad", .inputs = {any(whole), dims}, .differentiate = {0}});
    rows.push_back({.op = forward + "Grad",
                    .inputs = {any_complex(whole.rank() == 1 ? Shape{9} : whole), dims},
                    .error = "dy is"});
  }
  const Tensor x = any({3, 7});
  rows.push_back({.op = "RFFT",
                  .inputs = {x},
                  .attrs = {{"fft_length", ints({5})}},
                  .want = {first_half(dft_of(as_complex(fitted_to<double>(x, 5)), 1, false))}});
  rows.push_back({.op = "RFFT",
                  .inputs = {x},
                  .attrs = {{"fft_length", ints({10})}},
                  .want = {first_half(dft_of(as_complex(fitted_to<double>(x, 10)), 1, false))}});
  rows.push_back(
      {.op = "RFFT", .inputs = {f32({4}, {1, 2, 3, 4})}, .want = {c64({3}, {10, {-2, 2}, -2})}});
  rows.push_back(
      {.op = "IRFFT", .inputs = {c64({3}, {10, {-2, 2}, -2})}, .want = {f32({4}, {1, 2, 3, 4})}});
  // Imaginary parts that no transform of real numbers has are not read.
  rows.push_back({.op = "IRFFT",
                  .inputs = {c128({3}, {{10, kFftNan}, {-2, 2}, {-2, kFftNan}})},
                  .want = {f64({4}, {1, 2, 3, 4})}});
  return rows;
});

}  // namespace
}  // namespace troupe::test
