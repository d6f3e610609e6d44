// Complex numbers and Fourier transforms through the client's API.
#include <doctest/doctest.h>
#include <limits>

#include <cmath>
#include <complex>
#include <functional>
#include <limits>

#include "tests/ops/api_interpreter.hpp"

using namespace troupe;
using troupe::test::Interpreter;

namespace {

using ApiComplex = std::complex<double>;
using ApiNarrow = std::complex<float>;

std::string refused_complex(const std::function<void()>& f) {
  try {
    f();
  } catch (const Error& e) {
    return e.status().text();
  }
  return "";
}
bool told(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

}  // namespace

TEST_CASE("complex numbers are made, taken apart and computed with") {
  Graph g;
  const Output z = complex(constant(g, {3.0, 0.0}), constant(g, {4.0, -2.0}));
  CHECK(z.dtype() == DType::c128);
  CHECK(real(z).dtype() == DType::f64);
  const auto got =
      Interpreter(g).run({abs(z), imag(conj(z)), angle(z), 2.0 * z + constant(g, ApiComplex(0, 1)),
                          abs(constant(g, {-1.5f})), z == conj(z)});
  CHECK(Tensor::same(got[0], Tensor::of<double>({2}, {5, 2})));
  CHECK(Tensor::same(got[1], Tensor::of<double>({2}, {-4, 2})));
  CHECK(got[2].data<double>()[1] == doctest::Approx(-M_PI / 2));
  CHECK(Tensor::same(got[3], Tensor::of<ApiComplex>({2}, {{6, 9}, {0, -3}})));
  CHECK(Tensor::same(got[4], Tensor::of<float>({1}, {1.5f})));
  CHECK(Tensor::same(got[5], Tensor::of<bool>({2}, {false, false})));
}

TEST_CASE("constants of complex numbers are scalars, vectors and matrices") {
  Graph g;
  const std::vector<Output> made{constant(g, ApiNarrow(1, 2)),
                                 constant(g, {ApiComplex(1, 2), ApiComplex(3)}),
                                 constant(g, {{ApiComplex(1, 2)}, {ApiComplex(0, 1)}}),
                                 constant<ApiNarrow>(g, 1.5f),
                                 cast<ApiNarrow>(constant(g, 2)),
                                 ones<ApiComplex>(g, {2}),
                                 fill<ApiNarrow>(g, {2}, {0, 1})};
  const auto got = Interpreter(g).run(made);
  CHECK(Tensor::same(got[0], Tensor::scalar(ApiNarrow(1, 2))));
  CHECK(Tensor::same(got[1], Tensor::of<ApiComplex>({2}, {{1, 2}, 3})));
  CHECK(Tensor::same(got[2], Tensor::of<ApiComplex>({2, 1}, {{1, 2}, {0, 1}})));
  CHECK(Tensor::same(got[3], Tensor::scalar(ApiNarrow(1.5))));
  CHECK(Tensor::same(got[4], Tensor::scalar(ApiNarrow(2))));
  CHECK(Tensor::same(got[5], Tensor::of<ApiComplex>({2}, {1, 1})));
  CHECK(Tensor::same(got[6], Tensor::of<ApiNarrow>({2}, {{0, 1}, {0, 1}})));
}

TEST_CASE(
    "the gradient of a complex number points to where a real loss grows, and a complex loss is "
    "refused") {
  Graph g;
  const Output z = constant(g, {ApiComplex(1, 2), ApiComplex(-3, 0.5)});
  // |z|^2 grows along 2 z; the real part of z^2 along the conjugate of its derivative.
  const Output square = sum(troupe::square(abs(z))), part = sum(real(z * z));
  const Output gap = real(z) - imag(z);
  const auto got = Interpreter(g).run(
      {gradients(square, {z})[0], gradients(part, {z})[0], gradients(sum(gap), {z})[0]});
  for (int i = 0; i < 2; ++i) {
    const ApiComplex at = i == 0 ? ApiComplex(1, 2) : ApiComplex(-3, 0.5);
    CHECK(std::abs(got[0].data<ApiComplex>()[i] - 2.0 * at) < 1e-14);
    CHECK(std::abs(got[1].data<ApiComplex>()[i] - 2.0 * std::conj(at)) < 1e-14);
    CHECK(got[2].data<ApiComplex>()[i] == ApiComplex(1, -1));
  }
  // At 0, where the absolute value has no slope, and the angle neither.
  const Output zero = constant(g, {ApiComplex(0, 0)});
  const auto none = Interpreter(g).run(
      {gradients(sum(abs(zero)), {zero})[0], gradients(sum(angle(zero)), {zero})[0]});
  for (const Tensor& slope : none) CHECK(slope.data<ApiComplex>()[0] == 0.0);
  const std::string said = refused_complex([&] { gradients(sum(z * z), {z}); });
  CHECK_MESSAGE(told(said, "is c128, but a loss must be real"), said);
}

TEST_CASE("a complex variable is learned by its gradient") {
  Graph g;
  const Output target = constant(g, {ApiComplex(1, -2), ApiComplex(0.5, 3)});
  const Variable w = variable(g, "w", zeros<ApiComplex>(g, {2}));
  const Output loss = sum(square(abs(w * constant(g, ApiComplex(0, 1)) - target)));
  const Op update = assign(w, w - 0.25 * gradients(loss, {w})[0]);
  Interpreter run(g);
  run.init();
  for (int i = 0; i < 60; ++i) run.run({}, {update});
  const Tensor learned = run.run({w})[0];
  CHECK(std::abs(learned.data<ApiComplex>()[0] - ApiComplex(-2, -1)) < 1e-12);
  CHECK(std::abs(learned.data<ApiComplex>()[1] - ApiComplex(3, -0.5)) < 1e-12);
}

TEST_CASE("order comparisons and what else has no meaning refuse complex numbers by name") {
  Graph g;
  const Output z = constant(g, {ApiComplex(1, 2)});
  for (const auto& f :
       {std::function<void()>([&] { z < z; }), {[&] { max(z); }}, {[&] { floor(z); }}, {[&] {
          relu(z);
        }}}) {
    const std::string said = refused_complex(f);
    CHECK_MESSAGE(told(said, "is c128"), said);
  }
}

TEST_CASE("signals are filtered by their transforms") {
  Graph g;
  const Output x = constant(g, {{1.0, 2.0, 3.0, 4.0, 5.0}, {0.0, 1.0, 0.0, -1.0, 2.0}});
  const Output kernel = constant(g, {{0.5, 0.25, 0.0, 0.0, 0.25}});
  // A convolution around the ends is a product of transforms; the length of the inverse is odd.
  const Output y = irfft(rfft(x) * rfft(kernel), {.fft_length = {5}});
  const Output back = ifft2d(fft2d(cast<ApiComplex>(x)));
  const auto got = Interpreter(g).run({y, back, rfft(x, {.fft_length = {2}, .norm = "ortho"})});
  const double rows[2][5] = {{1, 2, 3, 4, 5}, {0, 1, 0, -1, 2}};
  for (int r = 0; r < 2; ++r)
    for (int i = 0; i < 5; ++i) {
      const double want =
          0.5 * rows[r][i] + 0.25 * rows[r][(i + 4) % 5] + 0.25 * rows[r][(i + 1) % 5];
      CHECK(got[0].data<double>()[5 * r + i] == doctest::Approx(want));
      CHECK(std::abs(got[1].data<ApiComplex>()[5 * r + i] - rows[r][i]) < 1e-14);
    }
  CHECK(got[2].shape() == Shape{2, 2});
  CHECK(got[2].data<ApiComplex>()[0].real() == doctest::Approx(3 / std::sqrt(2)));
}

// Complex arithmetic that is asked for on a GPU is placed where there is a kernel.
TEST_CASE("no GPU is asked to compute with complex numbers") {
  const auto index = ops::builtin().index();
  for (const char* op : {"Add", "Mul", "Exp", "Sum", "MatMul", "AddN", "Equal", "ZerosLike", "Pad",
                         "GatherGrad", "Spread", "SumToShape"}) {
    INFO(op);
    CHECK(index->has(op, "CPU", DType::c64));
    CHECK(index->has(op, "CUDA", DType::f32));
    CHECK_FALSE(index->has(op, "CUDA", DType::c64));
    CHECK_FALSE(index->has(op, "CUDA", DType::c128));
  }
  for (const char* op : {"Identity", "Reshape", "Slice", "Concat", "Select", "Gather"}) {
    INFO(op);
    CHECK(index->has(op, "CUDA", DType::c128));  // which move them
  }
}

TEST_CASE("the product of one infinite complex number is that number") {
  constexpr double kInf = std::numeric_limits<double>::infinity();
  Graph g;
  const Output z = constant(g, Tensor::of<ApiComplex>(Shape{1, 1}, {ApiComplex(kInf, 0)}));
  for (const Tensor& y : Interpreter(g).run({prod(z), prod(z, 0), prod(z, 1)})) {
    CHECK(y.data<ApiComplex>()[0].real() == kInf);
    CHECK(y.data<ApiComplex>()[0].imag() == 0);
  }
}
