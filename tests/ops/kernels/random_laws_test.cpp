// What the random ops draw that take their parameters from an input. Fixed keys: the tests cannot
// fail by bad luck.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>

#include "tests/ops/api_interpreter.hpp"
#include "tests/ops/nn/nn_kernels.hpp"

namespace troupe::test {
namespace {

constexpr std::int64_t kDrawn = 100'000;

Tensor filled(double value, std::int64_t n = kDrawn) {
  Tensor t = Tensor::make(DType::f64, Shape{n}).value();
  std::fill_n(t.mutable_data<double>(), n, value);
  return t;
}
Tensor drawn(const std::string& op, const Tensor& x, std::uint64_t key, AttrMap attrs = {}) {
  auto out = try_run(op, {x}, attrs, {.random = {.key = key, .run = 1}});
  REQUIRE_MESSAGE(out.ok(), out.status().text());
  ThreeLanes lanes;
  auto again = try_run(op, {x}, attrs, {.lanes = &lanes, .random = {.key = key, .run = 1}});
  REQUIRE(again.ok());
  REQUIRE(Tensor::same((*out)[0], (*again)[0]));
  return (*out)[0];
}
std::string refusal_to_draw(const std::string& op, const Tensor& x, AttrMap attrs = {}) {
  auto out = try_run(op, {x}, attrs, {.random = {.key = 1, .run = 1}});
  return out.ok() ? "drawn" : out.status().text();
}

// Within 5 standard errors of the mean, and the variance within 5 %.
void check_law(const Tensor& y, double mean, double variance) {
  const auto x = y.span<double>();
  double sum = 0, squares = 0;
  for (double v : x) sum += v;
  const double m = sum / double(x.size());
  for (double v : x) squares += (v - m) * (v - m);
  CHECK(std::abs(m - mean) < 5 * std::sqrt(variance / double(x.size())));
  CHECK(squares / double(x.size()) == doctest::Approx(variance).epsilon(0.05));
}

// Pearson's statistic over `cells`, of which the expected numbers are given.
double chi_square(const std::vector<double>& seen, const std::vector<double>& expected) {
  double sum = 0;
  for (std::size_t i = 0; i < seen.size(); ++i)
    sum += (seen[i] - expected[i]) * (seen[i] - expected[i]) / expected[i];
  return sum;
}
// Far in the tail of a chi-square distribution of that many degrees of freedom: about 6 deviations.
double far_tail(std::size_t cells) {
  const double k = double(cells - 1);
  return k + 6 * std::sqrt(2 * k) + 12;
}
// The numbers 0, 1, ... drawn, against their probabilities; those rarer than 10 count as one.
void check_counts(const Tensor& y, const std::function<double(int)>& probability, int most) {
  std::vector<double> seen, expected;
  double rest_seen = 0, rest = 0;
  std::vector<double> counts(std::size_t(most) + 1, 0.0);
  for (double v : y.span<double>()) {
    REQUIRE(v >= 0);
    REQUIRE(v == std::floor(v));
    counts[std::size_t(std::min(v, double(most)))] += 1;
  }
  for (int k = 0; k <= most; ++k) {
    const double wanted = probability(k) * double(y.elements());
    if (wanted >= 10 && k < most) {
      seen.push_back(counts[std::size_t(k)]);
      expected.push_back(wanted);
    } else {
      rest_seen += counts[std::size_t(k)];
    }
  }
  rest = double(y.elements()) - std::accumulate(expected.begin(), expected.end(), 0.0);
  if (rest > 5) {
    seen.push_back(rest_seen);
    expected.push_back(rest);
  }
  CHECK(chi_square(seen, expected) < far_tail(seen.size()));
}

}  // namespace

TEST_CASE("Bernoulli draws truth with the probability asked for, and never against certainty") {
  for (double p : {0.0, 1e-3, 0.3, 1.0}) {
    CAPTURE(p);
    const Tensor y = drawn("Bernoulli", filled(p), 21);
    const auto x = y.span<bool>();
    const auto hits = double(std::count(x.begin(), x.end(), true));
    CHECK(std::abs(hits - p * kDrawn) <= 5 * std::sqrt(p * (1 - p) * kDrawn));
  }
  for (double p : {-0.1, 1.1, std::nan("")})
    CHECK(refusal_to_draw("Bernoulli", filled(p, 2)).find("p[0] is ") != std::string::npos);
}

TEST_CASE("gamma numbers have the moments and the distribution of their shape") {
  for (double alpha : {0.05, 0.5, 1.0, 2.5, 1000.0}) {
    CAPTURE(alpha);
    check_law(drawn("RandomGamma", filled(alpha), 22), alpha, alpha);
  }
  // Of shape 1 they are exponential: every tenth of the distribution is hit equally often.
  for (double alpha : {1.0, 0.5}) {
    std::vector<double> seen(10, 0.0), expected(10, kDrawn / 10.0);
    const Tensor y = drawn("RandomGamma", filled(alpha), 23);
    for (double v : y.span<double>()) {
      const double below = alpha == 1 ? 1 - std::exp(-v) : std::erf(std::sqrt(v));
      seen[std::size_t(std::min(below * 10, 9.0))] += 1;
    }
    CHECK(chi_square(seen, expected) < far_tail(10));
  }
  for (double alpha : {0.0, -1.0, std::nan(""), HUGE_VAL})
    CHECK(refusal_to_draw("RandomGamma", filled(alpha, 2)).find("alpha[0] is ") !=
          std::string::npos);
  CHECK(at(drawn("RandomGamma", filled(1e-300, 1), 1), 0) == 0);
}

TEST_CASE("Poisson numbers have the distribution of their rate, small or large") {
  for (double rate : {0.1, 3.0, 9.9, 10.0, 40.0}) {
    CAPTURE(rate);
    const Tensor y = drawn("RandomPoisson", filled(rate), 24);
    check_law(y, rate, rate);
    check_counts(
        y, [&](int k) { return std::exp(k * std::log(rate) - rate - std::lgamma(k + 1.0)); }, 120);
  }
  for (double rate : {1e4, 1e9, 1e11}) {
    CAPTURE(rate);
    check_law(drawn("RandomPoisson", filled(rate), 25), rate, rate);
  }
  const Tensor none = drawn("RandomPoisson", filled(0, 100), 26);
  for (double v : none.span<double>()) CHECK(v == 0);
  for (double rate : {-1.0, std::nan(""), HUGE_VAL})
    CHECK(refusal_to_draw("RandomPoisson", filled(rate, 2)).find("rate[0] is ") !=
          std::string::npos);
}

TEST_CASE("classes are drawn as often as their logits say, and never without probability") {
  const double none = -HUGE_VAL;
  const Tensor logits = Tensor::of<double>(
      Shape{2, 5}, {none, std::log(0.1) + 700, none, std::log(0.9) + 700, none,  //
                    0, none, 0, std::log(2.0), -1e9});
  const Tensor y = drawn("Categorical", logits, 27, {{"n", 50'000}});
  REQUIRE(y.shape() == Shape{2, 50'000});
  std::vector<double> seen(10, 0.0);
  for (std::int64_t i = 0; i < y.elements(); ++i)
    seen[std::size_t(i / 50'000 * 5 + y.data<std::int64_t>()[i])] += 1;
  for (int impossible : {0, 2, 4, 6, 9}) CHECK(seen[std::size_t(impossible)] == 0);
  CHECK(chi_square({seen[1], seen[3]}, {5'000, 45'000}) < far_tail(2));
  CHECK(chi_square({seen[5], seen[7], seen[8]}, {12'500, 12'500, 25'000}) < far_tail(3));
}

TEST_CASE("candidates are drawn as their law says, and so often as they expect") {
  constexpr std::int64_t kClasses = 300;
  const Tensor all = [] {
    Tensor t = Tensor::make(DType::i64, Shape{kClasses}).value();
    std::iota(t.mutable_data<std::int64_t>(), t.mutable_data<std::int64_t>() + kClasses, 0);
    return t;
  }();
  for (const std::string op : {"UniformCandidateSampler", "LogUniformCandidateSampler"}) {
    CAPTURE(op);
    const auto draw_some = [&](std::uint64_t key, std::int64_t n, bool unique) {
      auto out =
          try_run(op, {all},
                  {{"n", n}, {"range_max", kClasses}, {"unique", unique}, {"Tcount", DType::f64}},
                  {.random = {.key = key, .run = 1}});
      REQUIRE_MESSAGE(out.ok(), out.status().text());
      return std::move(out).value();
    };
    std::vector<double> seen(kClasses, 0.0), expected;
    const auto many = draw_some(30, kDrawn, false);
    for (std::int64_t c : many[0].span<std::int64_t>()) seen[std::size_t(c)] += 1;
    for (std::int64_t c = 0; c < kClasses; ++c)
      expected.push_back(double(kDrawn) * (op[0] == 'U' ? 1.0 / kClasses
                                                        : std::log(double(c + 2) / double(c + 1)) /
                                                              std::log(double(kClasses + 1))));
    CHECK(chi_square(seen, expected) < far_tail(kClasses));
    for (std::size_t c = 0; c < kClasses; ++c)
      CHECK(many[1].span<double>()[c] == doctest::Approx(expected[c]).epsilon(1e-12));
    for (std::int64_t i = 0; i < 100; ++i)
      CHECK(at(many[2], i) == at(many[1], many[0].data<std::int64_t>()[i]));

    // Different ones: what is expected is close to how often they come.
    constexpr int kTimes = 2'000;
    std::fill(seen.begin(), seen.end(), 0.0);
    std::vector<double> hoped(kClasses, 0.0);
    for (std::uint64_t key = 0; key < kTimes; ++key) {
      const auto some = draw_some(key, 40, true);
      std::vector<std::int64_t> sorted(some[0].span<std::int64_t>().begin(),
                                       some[0].span<std::int64_t>().end());
      for (std::int64_t c : sorted) seen[std::size_t(c)] += 1;
      std::sort(sorted.begin(), sorted.end());
      REQUIRE(std::adjacent_find(sorted.begin(), sorted.end()) == sorted.end());
      for (std::size_t c = 0; c < kClasses; ++c) hoped[c] += some[1].span<double>()[c];
    }
    for (std::size_t c = 0; c < kClasses; ++c)
      CHECK(std::abs(seen[c] - hoped[c]) < 0.03 * hoped[c] + 5 * std::sqrt(hoped[c]));
  }
}

TEST_CASE("what of gamma numbers is drawn for an element does not depend on the others") {
  Tensor mixed = filled(0.5, 1'000);
  for (std::int64_t i = 0; i < 1'000; i += 2) mixed.mutable_data<double>()[i] = 7;
  const Tensor some = drawn("RandomGamma", mixed, 28), all = drawn("RandomGamma", filled(7), 28);
  for (std::int64_t i = 0; i < 1'000; i += 2) CHECK(at(some, i) == at(all, i));
}

TEST_CASE("every order of three rows comes, and rows are shuffled whole") {
  std::vector<double> seen(6, 0.0), expected(6, 1'000.0);
  for (std::uint64_t key = 0; key < 6'000; ++key) {
    auto out = try_run("RandomOrder", {filled(0, 3)}, {}, {.random = {.key = key, .run = 3}});
    REQUIRE(out.ok());
    const auto* o = (*out)[0].data<std::int64_t>();
    REQUIRE(o[0] + o[1] + o[2] == 3);
    seen[std::size_t(o[0] * 2 + (o[1] > o[2]))] += 1;
  }
  CHECK(chi_square(seen, expected) < far_tail(6));
  Graph g;
  const Output x = constant(g, {{1.f, 2.f}, {3.f, 4.f}, {5.f, 6.f}, {7.f, 8.f}});
  const Output y = random_shuffle(x);
  const Tensor rows = Interpreter(g).run({y})[0];
  std::vector<float> firsts;
  for (int i = 0; i < 4; ++i) {
    firsts.push_back(rows.data<float>()[2 * i]);
    CHECK(rows.data<float>()[2 * i + 1] == firsts.back() + 1);
  }
  std::sort(firsts.begin(), firsts.end());
  CHECK(firsts == std::vector<float>{1, 3, 5, 7});
  CHECK(!gradients(y, {x})[0].empty());
}

TEST_CASE("normal numbers drawn like a tensor are those drawn of its shape") {
  const AttrMap moments{{"mean", 2.0}, {"stddev", 6.0}};
  const EvaluateOptions options{.random = {.key = 1, .run = 1}};
  auto like = try_run("RandomStandardNormalLike", {filled(0, 1'001)}, moments, options);
  AttrMap same = moments;
  same.emplace("shape", PartialShape{1'001});
  same.emplace("T", DType::f64);
  auto of_shape = try_run("RandomStandardNormal", {}, same, options);
  REQUIRE(like.ok());
  REQUIRE(of_shape.ok());
  CHECK(Tensor::same((*like)[0], (*of_shape)[0]));
}

}  // namespace troupe::test
