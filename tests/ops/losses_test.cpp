// Losses and activations: values beside their formulas, gradients beside finite differences, and
// the ends of the number range.
#include <doctest/doctest.h>

#include <cmath>
#include <functional>
#include <limits>
#include <vector>

#include "tests/misuse.hpp"
#include "tests/ops/api_interpreter.hpp"

using namespace troupe;
using test::check_refused;
using troupe::test::Interpreter;

namespace {

constexpr double kWithoutEnd = std::numeric_limits<double>::infinity();

using Made = std::function<Output(Output)>;

// f of these values, and the gradient of its sum.
struct Curve {
  std::vector<double> y, slope;
  Curve(const Made& f, const std::vector<double>& at) {
    Graph g;
    const Output x = constant(g, Tensor::of<double>(Shape{std::int64_t(at.size())}, at));
    const Output of = f(x);
    Interpreter run(g);
    const auto values = run.run({of, gradients(of, {x})[0]});
    y.assign(values[0].span<double>().begin(), values[0].span<double>().end());
    slope.assign(values[1].span<double>().begin(), values[1].span<double>().end());
  }
};

// Of numbers that are no corners of it.
void check_curve(const Made& f, const std::function<double(double)>& want,
                 const std::vector<double>& at) {
  const Curve curve(f, at);
  for (std::size_t i = 0; i < at.size(); ++i) {
    CAPTURE(at[i]);
    CHECK(curve.y[i] == doctest::Approx(want(at[i])).epsilon(1e-12).scale(1e-3));
    const double h = 1e-6, slope = (want(at[i] + h) - want(at[i] - h)) / (2 * h);
    CHECK(curve.slope[i] == doctest::Approx(slope).epsilon(1e-6).scale(1e-2));
  }
}

const std::vector<double> kPoints{-4, -1.5, -0.25, 0.125, 0.75, 2, 5};

double logistic(double x) { return 1 / (1 + std::exp(-x)); }

}  // namespace

TEST_CASE("activations have their values and slopes") {
  check_curve([](Output x) { return gelu(x); },
              [](double x) { return x / 2 * (1 + std::erf(x / std::sqrt(2.0))); }, kPoints);
  check_curve([](Output x) { return gelu(x, {.approximate = true}); },
              [](double x) {
                return x / 2 * (1 + std::tanh(std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x)));
              },
              kPoints);
  check_curve([](Output x) { return silu(x); }, [](double x) { return x * logistic(x); }, kPoints);
  check_curve([](Output x) { return leaky_relu(x, 0.2); },
              [](double x) { return x > 0 ? x : 0.2 * x; }, kPoints);
  check_curve([](Output x) { return leaky_relu(x, 3); }, [](double x) { return x > 0 ? x : 3 * x; },
              kPoints);
  check_curve([](Output x) { return selu(x); },
              [](double x) {
                return 1.0507009873554805 * (x > 0 ? x : 1.6732632423543772 * std::expm1(x));
              },
              kPoints);
  check_curve([](Output x) { return mish(x); },
              [](double x) { return x * std::tanh(std::log1p(std::exp(x))); }, kPoints);
  check_curve([](Output x) { return hard_swish(x); },
              [](double x) { return x * std::min(std::max(x + 3, 0.0), 6.0) / 6; }, kPoints);
}

TEST_CASE("leaky_relu rounds f16 and bf16 once, and not its slope before") {
  for (const DType dtype : {DType::f16, DType::bf16}) {
    Graph g;
    const Output exact = constant(g, Tensor::of<double>(Shape{4}, {-3, -7, -11, 5}));
    const Output x = cast(exact, dtype), y = leaky_relu(x, 0.1);
    CHECK(y.dtype() == dtype);
    const Output want = cast(leaky_relu(exact, 0.1), dtype);
    const auto values = Interpreter(g).run({y, want});
    CHECK(Tensor::same(values[0], values[1]));
  }
}

TEST_CASE("activations at the ends of the number range") {
  const Curve selus([](Output x) { return selu(x); }, {kWithoutEnd, -kWithoutEnd, 1000, -1000, 0});
  CHECK(selus.y[0] == kWithoutEnd);
  CHECK(selus.y[1] == doctest::Approx(-1.7580993408473766));
  CHECK(selus.slope[2] == doctest::Approx(1.0507009873554805));
  CHECK(selus.slope[3] == 0);
  CHECK(selus.slope[4] == doctest::Approx(1.7580993408473766));
  const Curve leaky([](Output x) { return leaky_relu(x); }, {kWithoutEnd, -kWithoutEnd, 0});
  CHECK((leaky.y[0] == kWithoutEnd && leaky.y[1] == -kWithoutEnd && leaky.y[2] == 0));
  const Curve silus([](Output x) { return silu(x); }, {800, -800});
  CHECK((silus.y[0] == 800 && silus.y[1] == 0 && std::isfinite(silus.slope[1])));
}

TEST_CASE("sigmoid_cross_entropy is that of its formula, without overflow and with a slope at 0") {
  for (const double label : {0.0, 0.3, 1.0})
    check_curve([&](Output x) { return sigmoid_cross_entropy(x, label); },
                [&](double x) {
                  return -label * std::log(logistic(x)) - (1 - label) * std::log(1 - logistic(x));
                },
                {-4, -1.5, -0.25, 0, 0.75, 2, 5});
  const Curve ones([](Output x) { return sigmoid_cross_entropy(x, 1); }, {100, -1000, 0});
  CHECK(ones.y[0] == doctest::Approx(std::exp(-100.0)).epsilon(1e-12));
  CHECK(ones.y[1] == 1000);
  CHECK(ones.slope[1] == -1);
  CHECK(ones.slope[2] == -0.5);
  Graph g;
  const Output logits = constant(g, Tensor::of<float>(Shape{2, 1}, {1, -1}));
  const Output labels = constant(g, Tensor::of<float>(Shape{2, 1}, {1, 0}));
  CHECK(sigmoid_cross_entropy(logits, labels).shape() == PartialShape{2, 1});
}

TEST_CASE("differences: squares, absolute values, Huber's and hinges") {
  check_curve([](Output x) { return huber(x, 0.5, 1.5); },
              [](double x) {
                const double d = std::abs(x - 0.5);
                return d <= 1.5 ? d * d / 2 : 1.5 * (d - 0.75);
              },
              kPoints);
  const Curve far([](Output x) { return huber(x, 0); }, {kWithoutEnd, -1e200, 0});
  CHECK((far.y[0] == kWithoutEnd && far.slope[0] == 1 && far.slope[1] == -1 && far.slope[2] == 0));
  check_curve([](Output x) { return hinge(x, 1); }, [](double x) { return std::max(0.0, 1 - x); },
              kPoints);
  check_curve([](Output x) { return hinge(x, 0); }, [](double x) { return std::max(0.0, 1 + x); },
              kPoints);
  Graph g;
  const Output a = constant(g, Tensor::of<double>(Shape{2, 2}, {1, 2, 3, 5}));
  const Output b = constant(g, Tensor::of<double>(Shape{2, 2}, {1, 0, 0, 1}));
  Interpreter run(g);
  CHECK(run.run({mean_squared_error(a, b)})[0].item<double>() == (0 + 4 + 9 + 16) / 4.0);
  CHECK(run.run({mean_absolute_error(a, 1)})[0].item<double>() == (0 + 1 + 2 + 4) / 4.0);
}

TEST_CASE("a column of predictions beside a row of targets is refused, not a loss of all pairs") {
  Graph g;
  const Output column = zeros(g, {4, 1}), row = zeros(g, {4}), whole = zeros(g, {4, 3});
  const Output open_column = placeholder<float>(g, {-1, 1}), open_row = placeholder<float>(g, {-1});
  check_refused({
      {"mean_squared_error: [4,1] and targets [4]", [&] { mean_squared_error(column, row); }},
      {"mean_squared_error: [4] and targets [4,1]", [&] { mean_squared_error(row, column); }},
      {"[?,1] and targets [?]", [&] { mean_squared_error(open_column, open_row); }},
      {"[?] and targets [?,1]", [&] { mean_squared_error(open_row, open_column); }},
      {"mean_absolute_error: [4,1]", [&] { mean_absolute_error(column, row); }},
      {"sigmoid_cross_entropy: [4,1]", [&] { sigmoid_cross_entropy(column, row); }},
      {"binary_cross_entropy: [4,1]", [&] { binary_cross_entropy(column, row); }},
      {"huber: [4,1]", [&] { huber(column, row); }},
      {"hinge: [4,1]", [&] { hinge(column, row); }},
  });
  // One side is repeated, or neither.
  CHECK(huber(whole, zeros(g, {3})).shape() == PartialShape{4, 3});
  CHECK(huber(whole, column).shape() == PartialShape{4, 3});
  CHECK(huber(zeros(g, {}), row).shape() == PartialShape{4});
  CHECK(huber(zeros(g, {1, 3}), whole).shape() == PartialShape{4, 3});
  CHECK(huber(row, zeros(g, {1, 4})).shape() == PartialShape{1, 4});
  CHECK(huber(zeros(g, {1, 1}), zeros(g, {1})).shape() == PartialShape{1, 1});
  CHECK(huber(open_column, open_column).shape() == PartialShape{-1, 1});
  CHECK(huber(placeholder<float>(g, PartialShape()), row).shape() == PartialShape());
}

TEST_CASE("cosine_distance is 0 for rows of one direction, and 1 beside a row of zeros") {
  Graph g;
  const Output a = constant(g, Tensor::of<double>(Shape{4, 2}, {1, 2, 1, 0, 0, 0, 3, 4}));
  const Output b = constant(g, Tensor::of<double>(Shape{4, 2}, {10, 20, 0, 5, 1, 1, -3, -4}));
  const Output distance = cosine_distance(a, b);
  Interpreter run(g);
  const auto values = run.run({distance, gradients(distance, {a})[0], cosine_distance(a, b, 0),
                               distance + cosine_similarity(a, b)});
  const double want[] = {0, 1, 1, 2};
  for (int i = 0; i < 4; ++i)
    CHECK(values[0].data<double>()[i] == doctest::Approx(want[i]).scale(1).epsilon(1e-14));
  for (const double slope : values[1].span<double>()) CHECK(std::isfinite(slope));
  CHECK(values[2].shape() == Shape{2});
  for (const double both : values[3].span<double>())
    CHECK(both == doctest::Approx(1).epsilon(1e-14));
}

TEST_CASE("the loss of a class is as exact for large logits as for small ones") {
  for (const double by : {0.0, 1e3, -1e3, 1e8, -1e8}) {
    CAPTURE(by);
    Graph g;
    const float a = float(by), b = float(by) + 0.5f;
    const Output x = constant(g, Tensor::of<float>({1, 2}, {a, b}));
    const Output sparse = softmax_cross_entropy(x, constant(g, std::vector<std::int64_t>{0}));
    const Output dense = softmax_cross_entropy(x, constant(g, Tensor::of<float>({1, 2}, {1, 0})));
    const auto y = Interpreter(g).run({sparse, dense});
    const double want = std::log1p(std::exp(double(b) - double(a)));
    for (const Tensor& loss : y)
      CHECK(loss.data<float>()[0] == doctest::Approx(want).epsilon(1e-6));
  }
}

TEST_CASE("the entropy of a softmax by its cross entropy with itself has its gradient") {
  Graph g;
  // The last class is left out.
  const Output x = constant(g, Tensor::of<double>({1, 4}, {0.5, -1, 2, -kWithoutEnd}));
  const Output p = softmax(x), loss = softmax_cross_entropy(x, p);
  const Output held = softmax_cross_entropy(x, stop_gradient(p));
  const auto y = Interpreter(g).run({p, loss, gradients(loss, {x})[0], gradients(held, {x})[0]});
  const double entropy = y[1].data<double>()[0];
  for (int i = 0; i < 4; ++i) {
    const double share = y[0].data<double>()[i];
    const double want = share == 0 ? 0 : -share * (std::log(share) + entropy);
    CHECK(y[2].data<double>()[i] == doctest::Approx(want).epsilon(1e-12));
    CHECK(y[3].data<double>()[i] == doctest::Approx(0).scale(1).epsilon(1e-15));
  }
}

TEST_CASE("a determinant is in range although a part of its product is not") {
  Graph g;
  const auto of = [&](const std::vector<float>& diagonal) {
    return matrix_determinant(matrix_diag(constant(g, diagonal)));
  };
  const auto y = Interpreter(g).run({of({1e20f, 1e20f, 1e-20f, 1e-20f}),
                                     of({1e-20f, 1e-20f, 1e-20f, 1e20f, 1e20f, 1e20f}),
                                     of({1e20f, 1e20f}), of({0, 1e20f}), of({3, -2})});
  CHECK(y[0].item<float>() == doctest::Approx(1).epsilon(1e-5));
  CHECK(y[1].item<float>() == doctest::Approx(1).epsilon(1e-5));
  CHECK(std::isinf(y[2].item<float>()));
  CHECK(y[3].item<float>() == 0);
  CHECK(y[4].item<float>() == -6);
}

TEST_CASE("losses and activations refuse what is wrong on the client's line") {
  Graph g;
  const Output x = constant(g, Tensor::of<float>(Shape{2}, {1, 2}));
  const Output other = constant(g, Tensor::of<float>(Shape{3}, {1, 2, 3})), none;
  check_refused({
      {"Gelu: all inputs are empty", [&] { gelu(none); }},
      {"Selu: all inputs are empty", [&] { selu(none); }},
      {"leaky_relu: x is empty", [&] { leaky_relu(none); }},
      {"silu: x is empty", [&] { silu(none); }},
      {"`logits` is empty", [&] { sigmoid_cross_entropy(none, 1); }},
      {"[3]", [&] { sigmoid_cross_entropy(x, other); }},
      {"[3]", [&] { mean_squared_error(x, other); }},
      {"`predictions` is empty", [&] { huber(none, 1); }},
      {"`delta` is finite and above 0", [&] { huber(x, 1, 0); }},
      {"`delta` is finite and above 0", [&] { huber(x, 1, std::nan("")); }},
      {"`a` is empty", [&] { cosine_distance(none, x); }},
      {"`b` is empty", [&] { cosine_distance(x, none); }},
      {"i32", [&] { gelu(constant(g, std::int32_t{1})); }},
  });
}
