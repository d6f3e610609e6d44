// MatMul, BiasAdd, activations, softmax and cross entropies against plain loops.
#include <limits>

#include "tests/ops/nn/nn_kernels.hpp"

using namespace troupe;
using namespace troupe::test;

namespace {

Tensor slow_matmul(const Tensor& a, const Tensor& b, bool ta, bool tb) {
  std::int64_t m = a.dim(ta), k = a.dim(!ta), n = b.dim(!tb);
  Tensor c = Tensor::make(DType::f64, Shape{m, n}).value();
  const double *x = a.data<double>(), *y = b.data<double>();
  double* z = c.mutable_data<double>();
  for (std::int64_t i = 0; i < m; ++i)
    for (std::int64_t j = 0; j < n; ++j) {
      double sum = 0;
      for (std::int64_t p = 0; p < k; ++p)
        sum += x[ta ? p * m + i : i * k + p] * y[tb ? j * k + p : p * n + j];
      z[i * n + j] = sum;
    }
  return c;
}

template <class F>
Tensor map(const Tensor& x, F f) {
  Tensor y = Tensor::make(DType::f64, x.shape()).value();
  for (std::int64_t i = 0; i < x.elements(); ++i)
    y.mutable_data<double>()[i] = f(x.data<double>()[i]);
  return y;
}
template <class F>
Tensor map(const Tensor& x, const Tensor& z, F f) {
  Tensor y = Tensor::make(DType::f64, x.shape()).value();
  for (std::int64_t i = 0; i < x.elements(); ++i)
    y.mutable_data<double>()[i] = f(x.data<double>()[i], z.data<double>()[i]);
  return y;
}

Tensor slow_softmax(const Tensor& x) {
  std::int64_t n = x.dim(x.rank() - 1);
  Tensor y = map(x, [](double v) { return std::exp(v); });
  for (std::int64_t i = 0; i < x.elements(); i += n) {
    double sum = 0;
    for (std::int64_t j = 0; j < n; ++j) sum += y.data<double>()[i + j];
    for (std::int64_t j = 0; j < n; ++j) y.mutable_data<double>()[i + j] /= sum;
  }
  return y;
}

}  // namespace

TEST_CASE("MatMul equals three nested loops, whatever is transposed") {
  std::mt19937_64 rng(test_seed());
  INFO("seed " << test_seed());
  const std::int64_t sizes[][3] = {{1, 1, 1},       {2, 3, 4},       {7, 1, 5},
                                   {1, 64, 9},      {33, 65, 17},    {100, 70, 10},
                                   {100, 300, 256}, {512, 100, 300}, {64, 513, 700},
                                   {323, 200, 301}, {64, 784, 10}};
  for (const auto& size : sizes)
    for (int mode = 0; mode < 4; ++mode) {
      const std::int64_t m = size[0], k = size[1], n = size[2];
      bool ta = mode & 1, tb = mode & 2;
      INFO(m << "x" << k << "x" << n << " mode " << mode);
      Tensor a = random_f64(rng, ta ? Shape{k, m} : Shape{m, k});
      Tensor b = random_f64(rng, tb ? Shape{n, k} : Shape{k, n});
      check_op("MatMul", {a, b}, {slow_matmul(a, b, ta, tb)},
               {{"transpose_a", ta}, {"transpose_b", tb}});
    }
}

TEST_CASE("MatMul over nothing gives zeros, and empty results are empty") {
  for (DType type : {DType::f32, DType::f64, DType::i32, DType::i64}) {
    auto c = run("MatMul", {Tensor::make(type, Shape{3, 0}).value(),
                            Tensor::make(type, Shape{0, 2}).value()});
    CHECK(Tensor::same(c[0], Tensor::zeros(type, Shape{3, 2}).value()));
    c = run("MatMul",
            {Tensor::make(type, Shape{0, 4}).value(), Tensor::zeros(type, Shape{4, 2}).value()});
    CHECK(c[0].shape() == Shape{0, 2});
  }
}

TEST_CASE("MatMul of integers wraps around") {
  auto a = Tensor::of<std::int32_t>(Shape{2, 2}, {1, 2, 2'000'000'000, 2'000'000'000});
  auto b = Tensor::of<std::int32_t>(Shape{2, 1}, {1, 1});
  auto c = run("MatMul", {a, b});
  CHECK(Tensor::same(c[0], Tensor::of<std::int32_t>(Shape{2, 1}, {3, -294'967'296})));
  c = run("MatMul", {a, b}, {{"transpose_a", true}});
  CHECK(Tensor::same(c[0], Tensor::of<std::int32_t>(Shape{2, 1}, {2'000'000'001, 2'000'000'002})));
}

TEST_CASE("MatMul refuses what does not fit") {
  Tensor a = Tensor::zeros(DType::f32, Shape{2, 3}).value();
  CHECK(try_run("MatMul", {a, a}).status().code() == Code::invalid_argument);
  Tensor v = Tensor::zeros(DType::f32, Shape{3}).value();
  CHECK(try_run("MatMul", {a, v}).status().code() == Code::invalid_argument);
}

TEST_CASE("BiasAdd adds to every row and its gradient sums them") {
  std::mt19937_64 rng(test_seed());
  INFO("seed " << test_seed());
  for (Shape shape : {Shape{1, 1}, Shape{7, 10}, Shape{5, 3, 2, 33}, Shape{2000, 64},
                      Shape{9, 40000}, Shape{6}, Shape{0, 4}, Shape{4, 0}}) {
    INFO(shape.text());
    std::int64_t n = shape.dim(shape.rank() - 1);
    Tensor x = random_f64(rng, shape), bias = random_f64(rng, Shape{n});
    Tensor y = x.clone().value(), db = Tensor::zeros(DType::f64, Shape{n}).value();
    for (std::int64_t i = 0; i < x.elements(); ++i) {
      y.mutable_data<double>()[i] += bias.data<double>()[i % n];
      db.mutable_data<double>()[i % n] += x.data<double>()[i];
    }
    check_op("BiasAdd", {x, bias}, {y});
    check_op("BiasAddGrad", {x}, {db});
  }
  CHECK(try_run("BiasAdd", {random_f64(rng, Shape{2, 3}), random_f64(rng, Shape{2})})
            .status()
            .code() == Code::invalid_argument);
}

TEST_CASE("activations follow their formulas, gradients too") {
  std::mt19937_64 rng(test_seed());
  INFO("seed " << test_seed());
  for (std::int64_t n : {0, 1, 100, 70000}) {
    Tensor x = map(random_f64(rng, Shape{n}), [](double v) { return 9 * v; });
    Tensor dy = random_f64(rng, Shape{n});
    struct Case {
      const char* op;
      double (*f)(double);
      double (*slope)(double);
    };
    for (Case c : {Case{"Relu", [](double v) { return std::max(v, 0.0); },
                        [](double v) { return v > 0 ? 1.0 : 0.0; }},
                   Case{"Relu6", [](double v) { return std::min(std::max(v, 0.0), 6.0); },
                        [](double v) { return v > 0 && v < 6 ? 1.0 : 0.0; }},
                   Case{"Elu", [](double v) { return v < 0 ? std::exp(v) - 1 : v; },
                        [](double v) { return v < 0 ? std::exp(v) : 1.0; }},
                   Case{"Softplus", [](double v) { return std::log(1 + std::exp(v)); },
                        [](double v) { return 1 / (1 + std::exp(-v)); }}}) {
      INFO(c.op << " of " << n);
      Tensor y = map(x, c.f);
      check_op(c.op, {x}, {y});
      check_op(std::string(c.op) + "Grad", {dy, y},
               {map(dy, x, [&](double d, double v) { return d * c.slope(v); })});
    }
  }
}

TEST_CASE("Relu keeps NaN and its gradient at 0 is 0") {
  auto y = run("Relu", {Tensor::of<float>(Shape{3}, {NAN, -1, 0})});
  CHECK(std::isnan(y[0].data<float>()[0]));
  auto dx =
      run("ReluGrad", {Tensor::of<float>(Shape{2}, {5, 5}), Tensor::of<float>(Shape{2}, {0, 1})});
  CHECK(Tensor::same(dx[0], Tensor::of<float>(Shape{2}, {0, 5})));
}

TEST_CASE("softmax, its logarithm and both gradients") {
  std::mt19937_64 rng(test_seed());
  INFO("seed " << test_seed());
  for (Shape shape : {Shape{1, 1}, Shape{100, 10}, Shape{3, 4, 17}, Shape{4000, 33}, Shape{16},
                      Shape{0, 5}, Shape{2, 0}, Shape{3, 1000}}) {
    INFO(shape.text());
    Tensor x = map(random_f64(rng, shape), [](double v) { return 8 * v; });
    Tensor dy = random_f64(rng, shape);
    Tensor y = slow_softmax(x), log_y = map(y, [](double v) { return std::log(v); });
    check_op("Softmax", {x}, {y});
    check_op("LogSoftmax", {x}, {log_y});
    Tensor dx = dy.clone().value(), dlog = dy.clone().value();
    std::int64_t n = shape.dim(shape.rank() - 1);
    for (std::int64_t i = 0; i < x.elements(); i += n) {
      double dot = 0, sum = 0;
      for (std::int64_t j = i; j < i + n; ++j) {
        dot += dy.data<double>()[j] * y.data<double>()[j];
        sum += dy.data<double>()[j];
      }
      for (std::int64_t j = i; j < i + n; ++j) {
        dx.mutable_data<double>()[j] = (dy.data<double>()[j] - dot) * y.data<double>()[j];
        dlog.mutable_data<double>()[j] = dy.data<double>()[j] - sum * y.data<double>()[j];
      }
    }
    check_op("SoftmaxGrad", {dy, y}, {dx});
    check_op("LogSoftmaxGrad", {dy, log_y}, {dlog}, {}, 1e-5);
  }
}

TEST_CASE("softmax of huge logits neither overflows nor loses its sum") {
  auto y = run("Softmax", {Tensor::of<float>(Shape{1, 4}, {1e30f, 1e30f, -1e30f, 0})});
  CHECK(Tensor::same(y[0], Tensor::of<float>(Shape{1, 4}, {0.5f, 0.5f, 0, 0})));
  y = run("Softmax", {Tensor::of<float>(Shape{1, 2}, {-INFINITY, 3})});
  CHECK(Tensor::same(y[0], Tensor::of<float>(Shape{1, 2}, {0, 1})));
  y = run("LogSoftmax", {Tensor::of<float>(Shape{1, 2}, {1000, 0})});
  CHECK(Tensor::same(y[0], Tensor::of<float>(Shape{1, 2}, {0, -1000})));
  y = run("Softmax", {Tensor::of<float>(Shape{1, 2}, {NAN, 3})});
  CHECK(std::isnan(y[0].data<float>()[1]));
}

TEST_CASE("a softmax row has the same bits wherever it starts in memory") {
  std::mt19937_64 rng(test_seed());
  INFO("seed " << test_seed());
  Tensor row = to_f32(random_f64(rng, Shape{1, 37}));
  Tensor many = Tensor::make(DType::f32, Shape{5, 37}).value();
  for (std::int64_t i = 0; i < many.elements(); ++i)
    many.mutable_data<float>()[i] = row.data<float>()[i % 37];
  Tensor one = run("Softmax", {row})[0], all = run("Softmax", {many})[0];
  for (std::int64_t i = 0; i < 5; ++i) CHECK(Tensor::same(all.rows(i, i + 1), one));
}

TEST_CASE("cross entropies agree with each other and with the formula") {
  std::mt19937_64 rng(test_seed());
  INFO("seed " << test_seed());
  for (auto [rows, n] :
       {std::pair<std::int64_t, std::int64_t>{1, 1}, {100, 10}, {3, 1000}, {0, 4}}) {
    Tensor x = map(random_f64(rng, Shape{rows, n}), [](double v) { return 5 * v; });
    Tensor y = slow_softmax(x), log_y = map(y, [](double v) { return std::log(v); });
    Tensor one_hot = Tensor::zeros(DType::f64, x.shape()).value();
    Tensor labels = Tensor::make(DType::i64, Shape{rows}).value();
    Tensor narrow_labels = Tensor::make(DType::i32, Shape{rows}).value();
    Tensor loss = Tensor::make(DType::f64, Shape{rows}).value(), backprop = y.clone().value();
    for (std::int64_t i = 0; i < rows; ++i) {
      std::int64_t label = std::int64_t(rng() % std::uint64_t(n));
      labels.mutable_data<std::int64_t>()[i] = label;
      narrow_labels.mutable_data<std::int32_t>()[i] = std::int32_t(label);
      one_hot.mutable_data<double>()[i * n + label] = 1;
      loss.mutable_data<double>()[i] = -log_y.data<double>()[i * n + label];
      backprop.mutable_data<double>()[i * n + label] -= 1;
    }
    check_op("SparseSoftmaxCrossEntropyWithLogits", {x, labels}, {loss, backprop});
    check_op("SparseSoftmaxCrossEntropyWithLogits", {x, narrow_labels}, {loss, backprop});
    check_op("SoftmaxCrossEntropyWithLogits", {x, one_hot}, {loss, backprop});
    // Soft labels that do not sum to 1.
    Tensor p = map(random_f64(rng, x.shape()), [](double v) { return std::abs(v); });
    for (std::int64_t i = 0; i < rows; ++i) {
      double mass = 0, sum = 0;
      for (std::int64_t j = i * n; j < (i + 1) * n; ++j) {
        mass += p.data<double>()[j];
        sum -= p.data<double>()[j] * log_y.data<double>()[j];
      }
      loss.mutable_data<double>()[i] = sum;
      for (std::int64_t j = i * n; j < (i + 1) * n; ++j)
        backprop.mutable_data<double>()[j] = y.data<double>()[j] * mass - p.data<double>()[j];
    }
    check_op("SoftmaxCrossEntropyWithLogits", {x, p}, {loss, backprop}, {}, 5e-6);
  }
}

TEST_CASE("a label out of range is named with its index") {
  Tensor x = Tensor::zeros(DType::f32, Shape{2, 3}).value();
  for (std::int64_t bad : {std::int64_t{-1}, std::int64_t{3}, std::int64_t{1} << 40}) {
    auto s = try_run("SparseSoftmaxCrossEntropyWithLogits",
                     {x, Tensor::of<std::int64_t>(Shape{2}, {0, bad})})
                 .status();
    CHECK(s.code() == Code::invalid_argument);
    CHECK(s.message().find("label " + std::to_string(bad) + " at index 1") != std::string::npos);
  }
}

TEST_CASE("ScaleRows multiplies row i by scale i") {
  std::mt19937_64 rng(test_seed());
  Tensor x = random_f64(rng, Shape{300, 2, 150}), s = random_f64(rng, Shape{300});
  Tensor y = x.clone().value();
  for (std::int64_t i = 0; i < x.elements(); ++i)
    y.mutable_data<double>()[i] *= s.data<double>()[i / 300];
  check_op("ScaleRows", {x, s}, {y});
}

TEST_CASE("ScaleRows gives 0 for a row scaled by 0, whatever is in it, and keeps other NaNs") {
  constexpr double nan = std::numeric_limits<double>::quiet_NaN();
  constexpr double inf = std::numeric_limits<double>::infinity();
  const Tensor x = Tensor::of<double>({5, 2}, {nan, 1, inf, -inf, -3, 4, nan, inf, 1, nan});
  const Tensor s = Tensor::of<double>({5}, {0, 0, 0, 2, nan});
  const Tensor y = run("ScaleRows", {x, s})[0];
  const double* is = y.data<double>();
  for (int i : {0, 1, 2, 3, 5}) CHECK(is[i] == 0);
  CHECK(std::signbit(is[4]));  // -3 * 0
  CHECK(std::isnan(is[6]));
  CHECK(is[7] == inf);
  CHECK((std::isnan(is[8]) && std::isnan(is[9])));
}
