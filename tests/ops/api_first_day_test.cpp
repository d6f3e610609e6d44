// What programs ask for beside the ops: draws, moments and norms, products, rows of batches. Values
// beside their formulas, gradients, ends of the number range, and what is refused.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <numeric>

#include "tests/misuse.hpp"
#include "tests/ops/api_interpreter.hpp"

using namespace troupe;
using troupe::test::Interpreter;

namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();

std::vector<double> values_of(const Tensor& t) {
  return {t.span<double>().begin(), t.span<double>().end()};
}
std::vector<double> computed(Graph& g, const Output& y) {
  return values_of(Interpreter(g).run({cast<double>(y)})[0]);
}
void check_near(const std::vector<double>& is, const std::vector<double>& want,
                double epsilon = 1e-12) {
  REQUIRE(is.size() == want.size());
  for (std::size_t i = 0; i < is.size(); ++i) {
    CAPTURE(i);
    if (std::isfinite(want[i]))
      CHECK(is[i] == doctest::Approx(want[i]).epsilon(epsilon).scale(1e-3));
    else
      CHECK((std::isnan(want[i]) ? std::isnan(is[i]) : is[i] == want[i]));
  }
}
Output vector(Graph& g, std::vector<double> values) {
  return constant(g, Tensor::of<double>(Shape{std::int64_t(values.size())}, values));
}
// d sum(y) / dx
std::vector<double> slopes(Graph& g, const Output& y, const Output& x) {
  return computed(g, gradients(y, {x})[0]);
}

void check_refused(const std::function<void()>& f, const char* wanted) {
  test::check_refused({{wanted, f}}, __FILE__, 0);
}

struct Drawn {
  double mean = 0, variance = 0, least = kInf, most = -kInf;
};
Drawn drawn(Graph& g, const Output& y) {
  const std::vector<double> v = computed(g, y);
  Drawn d;
  for (double x : v) d.mean += x / double(v.size());
  for (double x : v) {
    d.variance += (x - d.mean) * (x - d.mean) / double(v.size());
    d.least = std::min(d.least, x), d.most = std::max(d.most, x);
  }
  return d;
}

}  // namespace

TEST_CASE("draws have the moments of their distributions") {
  Graph g;
  const Shape many{40'000};
  const Drawn normal = drawn(g, random_normal(g, many, {.mean = 3, .stddev = 2}));
  CHECK(std::abs(normal.mean - 3) < 0.05);
  CHECK(std::abs(normal.variance - 4) < 0.15);
  CHECK(random_normal_like(zeros(g, {2, 3})).shape() == PartialShape{2, 3});

  const Drawn exponential = drawn(g, random_exponential(g, many, {.rate = 4}));
  CHECK(std::abs(exponential.mean - 0.25) < 0.01);
  CHECK(std::abs(exponential.variance - 1.0 / 16) < 0.005);
  CHECK(exponential.least >= 0);

  const Drawn laplace = drawn(g, random_laplace(g, many, {.mean = -1, .scale = 2}));
  CHECK(std::abs(laplace.mean + 1) < 0.06);
  CHECK(std::abs(laplace.variance - 8) < 0.5);

  const Drawn gumbel = drawn(g, random_gumbel(g, many, {.dtype = DType::f64}));
  CHECK(std::abs(gumbel.mean - 0.5772156649) < 0.03);
  CHECK(std::abs(gumbel.variance - M_PI * M_PI / 6) < 0.1);
  CHECK(std::isfinite(gumbel.most));

  // a = 2, b = 6: mean 1/4, variance 1/48; a = b = 1e-5: all but 0 and 1, each half of the time.
  const auto all = [&](double value) {
    return constant(g, Tensor::of<float>(many, std::vector<float>(40'000, float(value))));
  };
  const Drawn beta = drawn(g, random_beta(all(2), all(6)));
  CHECK(std::abs(beta.mean - 0.25) < 0.01);
  CHECK(std::abs(beta.variance - 1.0 / 48) < 0.002);
  CHECK((beta.least >= 0 && beta.most <= 1));
  const Drawn ends = drawn(g, random_beta(all(1e-5), constant(g, 1e-5f)));
  CHECK(std::abs(ends.mean - 0.5) < 0.02);
  CHECK(std::abs(ends.variance - 0.25) < 0.01);

  std::vector<double> order = computed(g, random_permutation(g, 100));
  CHECK(!std::is_sorted(order.begin(), order.end()));
  std::sort(order.begin(), order.end());
  for (int i = 0; i < 100; ++i) CHECK(order[std::size_t(i)] == i);
  CHECK(computed(g, random_permutation(g, 0)).empty());

  check_refused([&] { random_exponential(g, {1}, {.rate = 0}); }, "rate");
  check_refused([&] { random_laplace(g, {1}, {.scale = -1}); }, "scale");
  check_refused([&] { random_gumbel(g, {1}, {.dtype = DType::i32}); }, "i32");
  check_refused([&] { random_beta(zeros(g, {1}), vector(g, {1})); }, "f32");
  check_refused([&] { random_permutation(g, -1); }, "-1");
}

TEST_CASE("moments and norms over dimensions, with gradients where they have corners") {
  Graph g;
  const Output x = constant(g, Tensor::of<double>(Shape{2, 3}, {1, 2, 6, -1, -1, -1}));
  const MeanAndVariance of = moments(x, 1);
  check_near(computed(g, of.mean), {3, -1});
  check_near(computed(g, of.variance), {14.0 / 3, 0});
  CHECK(moments(x, 1, true).mean.shape() == PartialShape{2, 1});
  check_near(computed(g, variance(x)), {38.0 / 6});
  check_near(computed(g, stddev(x, {1})), {std::sqrt(14.0 / 3), 0});
  const double s = std::sqrt(14.0 / 3);
  check_near(slopes(g, stddev(x, 1), x), {-2 / (3 * s), -1 / (3 * s), 3 / (3 * s), 0, 0, 0});

  const Output y =
      constant(g, Tensor::of<double>(Shape{4, 2}, {3, 4, 0, 0, 3e200, 4e200, 3e-200, 4e-200}));
  check_near(computed(g, norm(y, {1})), {5, 0, 5e200, 5e-200});
  check_near(slopes(g, norm(y, {-1}), y), {0.6, 0.8, 0, 0, 0.6, 0.8, 0.6, 0.8});
  CHECK(norm(y).shape().rank() == 0);
  CHECK(norm(y, {1}, true).shape() == PartialShape{4, 1});
  check_near(computed(g, norm(vector(g, {1, kInf}))), {kInf});
  check_near(computed(g, norm(vector(g, {1, NAN}))), {NAN});
  check_near(computed(g, l2_normalize(y, 1)), {0.6, 0.8, 0, 0, 0.6, 0.8, 3e-188, 4e-188});
  const Output z = vector(g, {3, 4});
  check_near(slopes(g, gather(l2_normalize(z, 0), constant(g, 0)), z), {16.0 / 125, -12.0 / 125});
  check_refused([&] { l2_normalize(y, 1, 0); }, "epsilon");

  // Of f16 the squares would be infinite.
  const Output narrow = constant(g, Tensor::of<double>(Shape{2}, {3000, 4000}));
  check_near(computed(g, norm(cast(narrow, DType::f16))), {5000});
  check_near(computed(g, stddev(cast(narrow, DType::bf16))), {500}, 0.01);
}

TEST_CASE("products of vectors and tensors") {
  Graph g;
  const Output a = vector(g, {1, 2, 3}), b = vector(g, {4, 5, 6});
  check_near(computed(g, dot(a, b)), {32});
  check_near(computed(g, outer(a, vector(g, {1, -1}))), {1, -1, 2, -2, 3, -3});
  check_near(slopes(g, dot(a, b), a), {4, 5, 6});
  std::vector<double> numbers(24);
  std::iota(numbers.begin(), numbers.end(), 0);
  const Output x = constant(g, Tensor::of<double>(Shape{2, 3, 4}, numbers));
  const Output y = constant(g, Tensor::of<double>(Shape{4, 3, 2}, numbers));
  // NumPy: tensordot(x, y, 1)[1, 2, 1, 0] and so on.
  const Tensor one = Interpreter(g).run({tensordot(x, y, 1)})[0];
  CHECK(one.shape() == Shape{2, 3, 3, 2});
  double want = 0;
  for (int k = 0; k < 4; ++k) want += (12 + 8 + k) * (6 * k + 2);
  CHECK(one.span<double>()[((1 * 3 + 2) * 3 + 1) * 2] == want);
  const Tensor two = Interpreter(g).run({tensordot(x, y, {2, 1}, {0, -2})})[0];
  CHECK(two.shape() == Shape{2, 2});
  want = 0;
  for (int k = 0; k < 4; ++k)
    for (int j = 0; j < 3; ++j) want += (12 + 4 * j + k) * (6 * k + 2 * j + 1);
  CHECK(two.span<double>()[3] == want);
  CHECK(tensordot(x, y, 0).shape() == PartialShape{2, 3, 4, 4, 3, 2});
  check_refused([&] { tensordot(x, y, 2); }, "");
  check_refused([&] { tensordot(x, y, 4); }, "4 axes");
  check_refused([&] { tensordot(x, y, {0, 0}, {2, 2}); }, "twice");
  check_refused([&] { tensordot(x, y, {3}, {0}); }, "axis 3");
  check_refused([&] { tensordot(x, y, {2, 1}, {0}); }, "2 axes");
  check_refused([&] { dot(x, a); }, "vector");
}

TEST_CASE("rows of batches, repeated rows and added ones") {
  Graph g;
  const Output x = constant(g, Tensor::of<double>(Shape{2, 3}, {1, 2, 3, 4, 5, 6}));
  check_near(computed(g, batch_gather(x, constant(g, {2, 0}))), {3, 4});
  check_near(computed(g, batch_gather(x, constant(g, {{2, 2}, {0, 1}}))), {3, 3, 4, 5});
  check_near(computed(g, batch_gather(x, constant(g, {1}), 0)), {4, 5, 6});
  check_near(slopes(g, batch_gather(x, constant(g, {{2, 2}, {0, 1}})), x), {0, 0, 2, 1, 1, 0});
  const Output deep = reshape(x, {1, 2, 3});
  check_near(computed(g, batch_gather(deep, constant<std::int64_t>(g, {1, 2}, {1, 0}), 2)), {2, 4});
  Interpreter run(g);
  // One batch does not reach into the next.
  CHECK(run.failure_of({batch_gather(x, constant(g, {3, 0}))}).find("3") != std::string::npos);
  const Output open = placeholder(g, DType::f64, {-1, 3}), at = placeholder(g, DType::i64, {-1});
  const Output rows = batch_gather(open, at);
  const auto fed = [&](std::vector<std::int64_t> i) {
    return std::map<NodeId, Tensor>{
        {open.node(), run.run({x})[0]},
        {at.node(), Tensor::of<std::int64_t>(Shape{std::int64_t(i.size())}, i)}};
  };
  check_near(values_of(run.run({rows}, {}, fed({1, 2}))[0]), {2, 6});
  CHECK(!run.failure_of({rows}, fed({1})).empty());
  CHECK(!run.failure_of({rows}, fed({1, 1, 1})).empty());
  // One row of params is not that of every batch.
  auto one_row = fed({1, 2});
  one_row[open.node()] = Tensor::of<double>(Shape{1, 3}, {7, 8, 9});
  CHECK(!run.failure_of({rows}, one_row).empty());
  check_refused([&] { batch_gather(x, constant(g, {1, 1, 1})); }, "alike");
  check_refused([&] { batch_gather(x, constant(g, {1, 1}), 2); }, "alike");

  check_near(computed(g, repeat(x, 2)), {1, 2, 3, 1, 2, 3, 4, 5, 6, 4, 5, 6});
  check_near(computed(g, repeat(x, 2, -1)), {1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 6, 6});
  CHECK(computed(g, repeat(x, 0)).empty());
  check_near(slopes(g, repeat(x, 3), x), {3, 3, 3, 3, 3, 3});
  const Output many = repeat(open, 2);
  check_near(values_of(run.run({many}, {},
                               {{open.node(), Tensor::of<double>(Shape{1, 3}, {7, 8, 9})}})[0]),
             {7, 8, 9, 7, 8, 9});
  CHECK(run.run({many}, {}, {{open.node(), Tensor::of<double>(Shape{0, 3}, {})}})[0].shape() ==
        Shape{0, 3});
  check_refused([&] { repeat(x, -1); }, "-1");
  check_refused([&] { repeat(x, 1, 2); }, "axis 2");

  const Output added = tensor_scatter_add(
      x, constant(g, {{0}, {0}}), constant(g, Tensor::of<double>(Shape{2, 3}, {1, 0, 0, 1, 0, 5})));
  check_near(computed(g, added), {3, 2, 8, 4, 5, 6});
}

TEST_CASE("short forms: argmin, range, %, numbers of segments, logaddexp") {
  Graph g;
  const Output x = vector(g, {3, -1, 2});
  CHECK(computed(g, argmin(x)) == std::vector<double>{1});
  CHECK(computed(g, range(g, 3)) == std::vector<double>{0, 1, 2});
  CHECK(computed(g, range(g, 5, 0, -2)) == std::vector<double>{5, 3, 1});
  CHECK(range(g, 4).dtype() == DType::i64);
  CHECK(computed(g, constant(g, {-7, 7}) % 3) == std::vector<double>{2, 1});
  CHECK(computed(g, 5.5 % vector(g, {2})) == std::vector<double>{1.5});
  const Output ids = constant(g, {1, 1, 0});
  CHECK(computed(g, unsorted_segment_sum(x, ids, 3)) == std::vector<double>{2, 2, 0});
  CHECK(computed(g, unsorted_segment_mean(x, ids, 2)) == std::vector<double>{2, 1});
  CHECK(computed(g, unsorted_segment_max(x, ids, 2)) == std::vector<double>{2, 3});
  CHECK(computed(g, unsorted_segment_min(x, ids, 2)) == std::vector<double>{2, -1});
  CHECK(computed(g, unsorted_segment_prod(x, ids, 2)) == std::vector<double>{2, -3});
  check_near(computed(g, unsorted_segment_sqrt_n(x, ids, 2)), {2, std::sqrt(2)});
  check_refused([&] { unsorted_segment_sum(Output{}, ids, 2); }, "data");

  const Output a = vector(g, {1, 1000, -kInf, -kInf, kInf, kInf}),
               b = vector(g, {2, 999, -kInf, 5, kInf, -kInf});
  const double near = 1000 + std::log1p(std::exp(-1.0));
  check_near(computed(g, logaddexp(a, b)),
             {2 + std::log1p(std::exp(-1.0)), near, -kInf, 5, kInf, kInf});
  check_near(computed(g, logaddexp(vector(g, {0}), 0)), {std::log(2.0)});
}

TEST_CASE("a bound that is taken keeps an infinite slope behind it from what it bounds") {
  Graph g;
  const Output x = vector(g, {-1, 0, 4, -kInf});
  check_near(slopes(g, sqrt(maximum(x, 0)), x), {0, kInf, 0.25, 0});
  check_near(slopes(g, sqrt(maximum(0, x)), x), {0, kInf, 0.25, 0});
  check_near(slopes(g, sqrt(1 - minimum(1 - x, 1)), x), {0, kInf, 0.25, 0});
  check_near(slopes(g, log(clip_by_value(x, 0, 9)), x), {0, kInf, 0.25, 0});
}

template <class T>
concept TakenByNorm = requires(Output x, T value) {
  norm(x, value);
};

TEST_CASE("a norm is of any order from 1 on, which is never taken for an axis") {
  static_assert(!TakenByNorm<int> && !TakenByNorm<double> && TakenByNorm<Ints>);
  Graph g;
  const Output x = constant(g, Tensor::of<double>(Shape{3, 2}, {3, -4, 0, 0, 3e200, -3e200}));
  check_near(computed(g, norm(x, {.axes = {1}, .order = 1})), {7, 0, 6e200});
  check_near(computed(g, norm(x, {.axes = {1}, .order = kInf})), {4, 0, 3e200});
  const double cube = std::cbrt(91.0);
  check_near(computed(g, norm(x, {.axes = {1}, .order = 3})), {cube, 0, std::cbrt(2.0) * 3e200});
  check_near(slopes(g, norm(x, {.axes = {1}, .order = 1}), x), {1, -1, 0, 0, 1, -1});
  check_near(slopes(g, norm(x, {.axes = {1}, .order = kInf}), x), {0, -1, 0, 0, 0.5, -0.5});
  const double even = std::pow(2.0, -2.0 / 3);
  check_near(slopes(g, norm(x, {.axes = {1}, .order = 3}), x),
             {9 / (cube * cube), -16 / (cube * cube), 0, 0, even, -even});
  CHECK(norm(x, {.axes = {0}, .order = 3, .keep_dims = true}).shape() == PartialShape{1, 2});
  check_near(computed(g, norm(zeros(g, {0}, DType::f64), {.order = kInf})), {0});
  for (const double order : {0.5, 0.0, -kInf, std::nan("")})
    check_refused([&] { norm(x, {.order = order}); }, "order");
}

TEST_CASE("quantiles and medians are NumPy's, and give a NaN away") {
  Graph g;
  const Output x = constant(g, Tensor::of<double>(Shape{2, 4}, {3, 1, 2, 10, 5, -1, 0, 7}));
  check_near(computed(g, quantile(x, 0, 1)), {1, -1});
  check_near(computed(g, quantile(x, 0.25, 1)), {1.75, -0.25});
  check_near(computed(g, median(x, -1)), {2.5, 2.5});
  check_near(computed(g, quantile(x, 0.9, 1)), {7.9, 6.4});
  check_near(computed(g, quantile(x, 1, 1)), {10, 7});
  check_near(computed(g, median(x, 0)), {4, 0, 1, 8.5});
  check_near(computed(g, median(x)), {2.5});
  CHECK(median(x, 1, true).shape() == PartialShape{2, 1});
  CHECK(median(x, 0).shape() == PartialShape{4});
  check_near(slopes(g, quantile(x, 0.25, 1), x), {0, 0.25, 0.75, 0, 0, 0.25, 0.75, 0});
  check_near(computed(g, median(vector(g, {1, std::nan(""), 2}))), {std::nan("")});
  check_near(computed(g, median(vector(g, {kInf, 1, kInf, kInf}))), {kInf});
  // Of f16 the sum of both would be infinite.
  check_near(computed(g, median(cast(vector(g, {60000, 50000}), DType::f16))), {55008}, 1e-3);
  check_refused([&] { quantile(x, 1.5, 0); }, "[0, 1]");
  check_refused([&] { median(x, 2); }, "no dimension 2");
  check_refused([&] { median(constant(g, {1, 2})); }, "no floating type");
  check_refused([&] { median(zeros(g, {2, 0}), 1); }, "no elements");
  check_refused([&] { median(placeholder<float>(g, {-1, 2}), 0); }, "must be known");
}

TEST_CASE("cdist has the distances of all rows from all others, of any order") {
  Graph g;
  const Output a = constant(g, Tensor::of<double>(Shape{3, 2}, {1, 2, 0, 0, 3, 4}));
  const Output b = constant(g, Tensor::of<double>(Shape{2, 2}, {1, 2, -3, 4}));
  CHECK(cdist(a, b).shape() == PartialShape{3, 2});
  const double far = std::sqrt(20.0), near = std::sqrt(5.0), across = std::sqrt(8.0);
  check_near(computed(g, cdist(a, b)), {0, far, near, 5, across, 6});
  check_near(computed(g, cdist(a, b, 1)), {0, 6, 3, 7, 4, 6});
  check_near(computed(g, cdist(a, b, kInf)), {0, 4, 2, 4, 2, 6});
  check_near(slopes(g, cdist(a, b), a),
             {0.8944271909999159, -0.4472135954999579, 0.15278640450004205, -1.694427190999916,
              1.7071067811865475, 0.7071067811865475});
  CHECK(cdist(zeros(g, {7, 3, 2}), zeros(g, {5, 2})).shape() == PartialShape{7, 3, 5});
  check_refused([&] { cdist(a, vector(g, {1, 2})); }, "[..., n, d]");
  check_refused([&] { cdist(a, zeros(g, {2, 3}, DType::f64)); }, "differ in size");
  // One number is no row of two, even where only a run knows it.
  const Output open = placeholder(g, DType::f64, {-1, -1});
  Interpreter run(g);
  const auto failure = [&](std::int64_t size) {
    return run.failure_of({cdist(a, open)},
                          {{open.node(), Tensor::zeros(DType::f64, {2, size}).value()}});
  };
  CHECK(failure(2) == "");
  CHECK(failure(1).find("differ in size") != std::string::npos);
}

TEST_CASE("an extremum keeps an infinite slope behind it from what is not the extremum") {
  Graph g;
  const Output x = reshape(vector(g, {0, -1, 0, -kInf, -2, -3}), {2, 3});
  const std::vector<double> want{kInf, 0, kInf, 0, 0.5, 0};
  const Output more = vector(g, {0, 3});
  check_near(slopes(g, sqrt(max(x, {.axes = {1}}) + more), x), want);
  check_near(slopes(g, sqrt(more - min(-x, {.axes = {1}})), x), want);
  // Of second order, too: d/dx of the square of 1 / (2 sqrt(4)).
  const Output y = vector(g, {4, 1});
  const Output slope = gradients(sqrt(max(y)), {y})[0];
  check_near(slopes(g, square(slope), y), {2 * 0.25 * -1.0 / 32, 0});
  // All elements have a share in a NaN.
  const Output bad = vector(g, {0, std::nan(""), 1});
  check_near(slopes(g, 3 * max(bad), bad), {1, 1, 1});
}

TEST_CASE("a size of 0 has the slope 0, whatever the slope behind it") {
  Graph g;
  const Output x = vector(g, {0, -4, 1}), zeros = vector(g, {0, 0});
  check_near(slopes(g, sqrt(abs(x)), x), {0, -0.25, 0.5});
  check_near(slopes(g, sqrt(abs(complex(x, zeros_like(x)))), x), {0, -0.25, 0.5});
  check_near(slopes(g, sqrt(angle(complex(zeros, zeros))), zeros), {0, 0});
  check_near(slopes(g, sqrt(euclidean_norm(zeros)), zeros), {0, 0});
}

TEST_CASE("logaddexp of equal values has its first and second derivatives") {
  Graph g;
  const Output a = vector(g, {1, 0, -3, 1}), b = vector(g, {1, 0, -3, 2});
  const std::vector<Output> first = gradients(logaddexp(a, b), {a, b});
  const auto share = [](double apart) { return 1 / (1 + std::exp(apart)); };
  const double less = share(1), more = share(-1), bend = less * more;
  check_near(computed(g, first[0]), {0.5, 0.5, 0.5, less});
  check_near(computed(g, first[1]), {0.5, 0.5, 0.5, more});
  check_near(slopes(g, first[0], a), {0.25, 0.25, 0.25, bend});
  check_near(slopes(g, first[0], b), {-0.25, -0.25, -0.25, -bend});
  check_near(slopes(g, first[1], b), {0.25, 0.25, 0.25, bend});
}

TEST_CASE("logaddexp of infinities has gradients that are numbers, and NaN stays NaN") {
  Graph g;
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const Output a = vector(g, {-kInf, kInf, -kInf, kInf, nan, kInf, nan}),
               b = vector(g, {-kInf, kInf, 5, 0, kInf, nan, 1});
  const Output y = logaddexp(a, b);
  check_near(computed(g, y), {-kInf, kInf, 5, kInf, nan, nan, nan});
  const std::vector<double> da = slopes(g, y, a), db = slopes(g, y, b);
  for (std::size_t i = 0; i < 4; ++i) CHECK(da[i] + db[i] == 1);
  CHECK((da[2] == 0 && db[3] == 0));
}

TEST_CASE("short forms: where, roll, logarithms, a system of a Cholesky factor, one gradient") {
  Graph g;
  const Output x = vector(g, {1, 8, 1000});
  check_near(computed(g, where(x > 5, x, 0)), {0, 8, 1000});
  check_near(computed(g, where(x > 5, 1, -x)), {-1, 1, 1});
  check_near(computed(g, roll(x, 1, 0)), {1000, 1, 8});
  check_near(computed(g, roll(x, -1, -1)), {8, 1000, 1});
  check_near(computed(g, roll(x, {1}, {0})), {1000, 1, 8});
  check_near(computed(g, log2(x)), {0, 3, std::log2(1000)});
  check_near(computed(g, log10(x)), {0, std::log10(8), 3});
  check_near(slopes(g, log10(x), x),
             {1 / std::log(10), 1 / (8 * std::log(10)), 1 / (1000 * std::log(10))});
  // Rounded once: of f16 the logarithm of 1000 to the base 2 is the nearest to 9.965784.
  CHECK(computed(g, log2(cast(x, DType::f16)))[2] == double(float(half(9.965784f))));

  const Output a = constant(g, {{4.0, 2.0}, {2.0, 3.0}}), b = constant(g, {{2.0, 8.0}, {5.0, 4.0}});
  check_near(computed(g, matmul(a, cholesky_solve(cholesky(a), b))), {2, 8, 5, 4});
  check_near(computed(g, gradients(sum(x * x), x)[0]), {2, 16, 2000});
  const std::vector<Variable> parameters{variable(g, "v", Tensor::scalar(3.0)),
                                         variable(g, "w", Tensor::scalar(4.0))};
  CHECK(gradients(parameters[0] * parameters[1], parameters).size() == 2);
  CHECK(gradients(square(parameters[1]), parameters[1])[0].shape() == PartialShape::scalar());

  check_refused([&] { where(x, x, x); }, "condition");
  check_refused([&] { log2(Output()); }, "log2: x");
  check_refused([&] { log10(cast<std::int64_t>(x)); }, "i64");
  check_refused([&] { roll(x, 1, 1); }, "axis");
}

TEST_CASE("losses and activations of the first day") {
  Graph g;
  const Output logits = constant(g, Tensor::of<double>(Shape{1, 3}, {1, 2, 4}));
  const double sum = std::exp(1) + std::exp(2) + std::exp(4);
  const auto p = [&](double x) { return std::exp(x) / sum; };
  const double want =
      -(0.9 + 0.1 / 3) * std::log(p(2)) - 0.1 / 3 * (std::log(p(1)) + std::log(p(4)));
  const Output smooth = softmax_cross_entropy(logits, constant(g, {1}), {.label_smoothing = 0.1});
  check_near(computed(g, smooth), {want});
  const Output dense = softmax_cross_entropy(
      logits, constant(g, Tensor::of<double>(Shape{1, 3}, {0, 1, 0})), {.label_smoothing = 0.1});
  check_near(computed(g, dense), {want});
  check_near(slopes(g, smooth, logits), {p(1) - 0.1 / 3, p(2) - 0.9 - 0.1 / 3, p(4) - 0.1 / 3},
             1e-9);
  check_refused([&] { softmax_cross_entropy(logits, constant(g, {1}), {.label_smoothing = 1}); },
                "label_smoothing");

  const Output q = vector(g, {0.25, 0, 1});
  const double least = std::log(1e-7);
  check_near(computed(g, binary_cross_entropy(q, 1)), {-std::log(0.25), -least, 1e-7}, 1e-6);
  check_near(computed(g, binary_cross_entropy(q, 0)), {-std::log(0.75), 1e-7, -least}, 1e-6);
  for (double slope : slopes(g, binary_cross_entropy(q, vector(g, {0, 0, 1})), q))
    CHECK(std::isfinite(slope));
  check_refused([&] { binary_cross_entropy(q, 1, {.epsilon = 0.5}); }, "epsilon");

  const Output from = vector(g, {0.5, 0.5, 0}), to = vector(g, {0.25, 0.75, 0});
  check_near(computed(g, kl_divergence(from, to)),
             {0.5 * std::log(2) + 0.5 * std::log(0.5 / 0.75)});
  check_near(slopes(g, kl_divergence(from, to), to), {-2, -0.5 / 0.75, 0});
  check_near(computed(g, kl_divergence(to, from)), {0.25 * std::log(0.5) + 0.75 * std::log(1.5)});
  check_near(computed(g, kl_divergence(from, vector(g, {1, 0, 0}))), {kInf});

  const auto row = [&](double x, double y) {
    return constant(g, Tensor::of<double>(Shape{1, 2}, {x, y}));
  };
  check_near(computed(g, triplet_margin(row(0, 0), row(3, 4), row(0, 2))), {4});
  check_near(computed(g, triplet_margin(row(0, 0), row(0, 2), row(3, 4), 2)), {0});
  const Output anchor = row(1, 1);
  check_near(slopes(g, triplet_margin(anchor, anchor, row(1, 2), 2), anchor), {0, 1});
  check_refused([&] { triplet_margin(anchor, anchor, anchor, -1); }, "margin");

  const Output x = vector(g, {-4, -1, 0, 2, 800, -800});
  check_near(computed(g, hard_sigmoid(x)), {0, 1.0 / 3, 0.5, 5.0 / 6, 1, 0});
  check_near(computed(g, log_sigmoid(x)), {-std::log1p(std::exp(4)), -std::log1p(std::exp(1)),
                                           -std::log(2), -std::log1p(std::exp(-2)), 0, -800});
  check_near(computed(g, glu(vector(g, {3, 5, 0, 1}))), {1.5, 5 / (1 + std::exp(-1))});
  check_refused([&] { glu(vector(g, {1, 2, 3})); }, "");
}

TEST_CASE("self-attention takes its options by themselves") {
  Graph g;
  struct Net : nn::Module {
    using Module::Module;
    nn::MultiHeadAttention attention{*this, "attention", 4, 2};
  } net{g.scope("net")};
  const Output x = random_uniform(g, {2, 3, 4});
  const Output causal = net.attention(x, {.causal = true});
  const Output same = net.attention(x, x, x, {.causal = true});
  Interpreter run(g);
  run.init();
  const auto both = run.run({causal, same});
  CHECK(Tensor::same(both[0], both[1]));
  // One mask for each example needs a place for the heads.
  const Output padding = constant(g, Tensor::zeros(DType::bool_, Shape{2, 1, 3}).value());
  CHECK(net.attention(x, {.mask = expand_dims(padding, 1)}).shape() == PartialShape{2, 3, 4});
  const Output longer = constant(g, Tensor::zeros(DType::bool_, Shape{2, 1, 1, 5}).value());
  check_refused([&] { net.attention(x, {.mask = longer}); }, "[2,2,3,3]");
}

TEST_CASE("matmul takes vectors, as rows on the left and columns on the right") {
  Graph g;
  const Output v = vector(g, {1, 2}), w = vector(g, {3, 5});
  const Output m = constant(g, {{1.0, 2.0, 3.0}, {4.0, 5.0, 6.0}});
  const Output batch = stack({m, 2.0 * m});
  const Output none = placeholder<double>(g, {-1, 2});
  CHECK(matmul(v, m).shape() == PartialShape{3});
  CHECK(matmul(none, v).shape() == PartialShape{-1});
  check_near(computed(g, matmul(v, m)), {9, 12, 15});
  check_near(computed(g, matmul(m, vector(g, {1, 0, 2}))), {7, 16});
  check_near(computed(g, matmul(v, w)), {13});
  CHECK(matmul(v, w).shape() == PartialShape::scalar());
  check_near(computed(g, matmul(v, batch)), {9, 12, 15, 18, 24, 30});
  check_near(computed(g, matmul(batch, vector(g, {1, 0, 2}))), {7, 16, 14, 32});
  check_near(computed(g, matmul(m, v, {.transpose_a = true})), {9, 12, 15});
  check_near(slopes(g, sum(matmul(v, batch)), v), {18, 45});
  check_near(slopes(g, square(matmul(v, w)), w), {26, 52});
  check_refused([&] { matmul(v, m, {.transpose_a = true}); }, "a vector is not transposed");
  check_refused([&] { matmul(m, v, {.transpose_b = true}); }, "a vector is not transposed");
  check_refused([&] { matmul(m, v); }, "[2,3]");
}

TEST_CASE("class numbers that are no integers are refused, and what they are told from") {
  Graph g;
  const Output logits = zeros(g, {4, 3});
  check_refused([&] { softmax_cross_entropy(logits, zeros(g, {4})); },
                "labels f32[4] for logits [4,3]: class numbers are integers");
}
