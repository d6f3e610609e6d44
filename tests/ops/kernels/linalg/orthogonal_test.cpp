// Linear algebra on random matrices: what comes out, multiplied together again.
#include <doctest/doctest.h>

#include <cmath>
#include <map>

#include "graph/gradients.hpp"
#include "tests/ops/api_interpreter.hpp"
#include "tests/ops/nn/nn_kernels.hpp"

namespace troupe::test {
namespace {

using Values = std::vector<double>;

Values values_of_matrix(const Tensor& t) {
  return {t.span<double>().begin(), t.span<double>().end()};
}
// The product of m x k and k x n, either of them transposed.
Values times(const Values& a, const Values& b, std::int64_t m, std::int64_t k, std::int64_t n,
             bool ta = false, bool tb = false) {
  Values c(std::size_t(m * n), 0.0);
  for (std::int64_t i = 0; i < m; ++i)
    for (std::int64_t j = 0; j < n; ++j)
      for (std::int64_t p = 0; p < k; ++p)
        c[std::size_t(i * n + j)] +=
            a[std::size_t(ta ? p * m + i : i * k + p)] * b[std::size_t(tb ? j * k + p : p * n + j)];
  return c;
}
double furthest(const Values& a, const Values& b) {
  REQUIRE(a.size() == b.size());
  double most = 0, top = 1e-300;
  for (std::size_t i = 0; i < a.size(); ++i) {
    most = std::max(most, std::isfinite(a[i]) ? std::abs(a[i] - b[i]) : HUGE_VAL);
    top = std::max(top, std::abs(b[i]));
  }
  return most / top;
}
Values identity_matrix(std::int64_t n) {
  Values one(std::size_t(n * n), 0.0);
  for (std::int64_t i = 0; i < n; ++i) one[std::size_t(i * (n + 1))] = 1;
  return one;
}

// Random matrices of rank `rank`, times `scale`.
Values drawn_matrix(std::mt19937_64& rng, std::int64_t m, std::int64_t n, std::int64_t rank,
                    double scale) {
  const Values left = values_of_matrix(random_f64(rng, {m, rank}));
  const Values right = values_of_matrix(random_f64(rng, {rank, n}));
  Values a = times(left, right, m, rank, n);
  for (double& x : a) x *= scale;
  return a;
}
Tensor matrix(const Values& values, std::int64_t m, std::int64_t n) {
  Tensor t = Tensor::make(DType::f64, Shape{m, n}).value();
  std::copy(values.begin(), values.end(), t.mutable_data<double>());
  return t;
}

struct Drawn {
  std::int64_t m, n, rank;
  double scale;
};
const std::vector<Drawn> kDrawn = {{1, 1, 1, 1},      {5, 5, 5, 1},    {7, 3, 3, 1e-300},
                                   {3, 7, 3, 1e300},  {9, 9, 4, 1},    {40, 33, 20, 1e-5},
                                   {33, 40, 33, 1e8}, {70, 70, 70, 1}, {4, 4, 1, 1e-310}};

}  // namespace

TEST_CASE("q r, and u s v^T, are the matrix again, of any rank and size of numbers") {
  CAPTURE(test_seed());
  std::mt19937_64 rng(test_seed());
  for (const Drawn& d : kDrawn) {
    CAPTURE(d.m);
    CAPTURE(d.n);
    CAPTURE(d.scale);
    const std::int64_t k = std::min(d.m, d.n);
    const Values a = drawn_matrix(rng, d.m, d.n, d.rank, d.scale);
    const double close = d.scale < 1e-305 ? 1e-8 : 1e-13;  // few digits are left there
    const auto qr = run("Qr", {matrix(a, d.m, d.n)});
    const Values q = values_of_matrix(qr[0]), r = values_of_matrix(qr[1]);
    CHECK(furthest(times(q, q, k, d.m, k, true), identity_matrix(k)) < 1e-13);
    CHECK(furthest(times(q, r, d.m, k, d.n), a) < close);
    for (std::int64_t i = 0; i < k; ++i) {
      CHECK(r[std::size_t(i * d.n + i)] >= 0);
      for (std::int64_t j = 0; j < i; ++j) CHECK(r[std::size_t(i * d.n + j)] == 0);
    }
    const auto svd = run("Svd", {matrix(a, d.m, d.n)});
    const Values s = values_of_matrix(svd[0]), u = values_of_matrix(svd[1]),
                 v = values_of_matrix(svd[2]);
    CHECK(furthest(times(u, u, k, d.m, k, true), identity_matrix(k)) < 1e-13);
    CHECK(furthest(times(v, v, k, d.n, k, true), identity_matrix(k)) < 1e-13);
    Values us = u;
    for (std::size_t i = 0; i < us.size(); ++i) us[i] *= s[i % std::size_t(k)];
    CHECK(furthest(times(us, v, d.m, k, d.n, false, true), a) < close);
    for (std::int64_t i = 0; i < k; ++i) {
      CHECK(s[std::size_t(i)] >= 0);
      if (i > 0) CHECK(s[std::size_t(i)] <= s[std::size_t(i - 1)]);
      if (i >= d.rank && d.scale > 1e-300) CHECK(s[std::size_t(i)] < 1e-12 * s[0]);
    }
  }
}

TEST_CASE("eigenvectors are turned back into the symmetric matrix they are of") {
  CAPTURE(test_seed());
  std::mt19937_64 rng(test_seed());
  for (const Drawn& d : kDrawn) {
    CAPTURE(d.m);
    CAPTURE(d.scale);
    const std::int64_t n = d.m;
    Values half = drawn_matrix(rng, n, n, std::min(d.rank, n), d.scale / 2), a = half;
    for (std::int64_t i = 0; i < n; ++i)
      for (std::int64_t j = 0; j < n; ++j)
        a[std::size_t(i * n + j)] = half[std::size_t(i * n + j)] + half[std::size_t(j * n + i)];
    const auto out = run("SelfAdjointEig", {matrix(a, n, n)});
    const Values e = values_of_matrix(out[0]), v = values_of_matrix(out[1]);
    CHECK(furthest(times(v, v, n, n, n, true), identity_matrix(n)) < 1e-13);
    Values ve = v;
    for (std::size_t i = 0; i < ve.size(); ++i) ve[i] *= e[i % std::size_t(n)];
    CHECK(furthest(times(ve, v, n, n, n, false, true), a) < (d.scale < 1e-305 ? 1e-8 : 1e-13));
    CHECK(std::is_sorted(e.begin(), e.end()));
  }
}

TEST_CASE("vectors stay orthogonal where elements have sizes from 1e-300 to 1e300") {
  CAPTURE(test_seed());
  std::mt19937_64 rng(test_seed());
  for (int round = 0; round < 200; ++round) {
    const auto m = std::int64_t(1 + rng() % 7), n = std::int64_t(1 + rng() % 7);
    CAPTURE(round);
    const auto graded = [&](std::int64_t rows, std::int64_t columns) {
      Values a = values_of_matrix(random_f64(rng, {rows, columns}));
      for (double& x : a) x *= std::pow(10.0, double(rng() % 600) - 300);
      return a;
    };
    const std::int64_t k = std::min(m, n);
    const auto svd = run("Svd", {matrix(graded(m, n), m, n)});
    const Values u = values_of_matrix(svd[1]), v = values_of_matrix(svd[2]);
    CHECK(furthest(times(u, u, k, m, k, true), identity_matrix(k)) < 1e-13);
    CHECK(furthest(times(v, v, k, n, k, true), identity_matrix(k)) < 1e-13);
    const Values e = values_of_matrix(run("SelfAdjointEig", {matrix(graded(m, m), m, m)})[1]);
    CHECK(furthest(times(e, e, m, m, m, true), identity_matrix(m)) < 1e-13);
  }
}

TEST_CASE("solutions of large systems, in blocks, solve them") {
  CAPTURE(test_seed());
  std::mt19937_64 rng(test_seed());
  for (std::int64_t n : {31, 33, 65, 130}) {
    CAPTURE(n);
    const Values raw = values_of_matrix(random_f64(rng, {n, n}));
    Values a = times(raw, raw, n, n, n, true);  // positive definite
    for (std::int64_t i = 0; i < n; ++i) a[std::size_t(i * (n + 1))] += 1;
    const Values l = values_of_matrix(run("Cholesky", {matrix(a, n, n)})[0]);
    CHECK(furthest(times(l, l, n, n, n, false, true), a) < 1e-13);
    const Values inverse = values_of_matrix(run("MatrixInverse", {matrix(a, n, n)})[0]);
    CHECK(furthest(times(a, inverse, n, n, n), identity_matrix(n)) < 1e-9);
    const Tensor b = random_f64(rng, {n, 5});
    for (bool adjoint : {false, true}) {
      const auto x =
          values_of_matrix(run("MatrixSolve", {matrix(raw, n, n), b}, {{"adjoint", adjoint}})[0]);
      CHECK(furthest(times(raw, x, n, n, 5, adjoint), values_of_matrix(b)) < 1e-8);
      for (bool lower : {false, true}) {
        Values triangle = a;
        for (std::int64_t i = 0; i < n; ++i)
          for (std::int64_t j = 0; j < n; ++j)
            if (lower ? j > i : j < i) triangle[std::size_t(i * n + j)] = 0;
        const auto y = values_of_matrix(run("MatrixTriangularSolve", {matrix(a, n, n), b},
                                            {{"adjoint", adjoint}, {"lower", lower}})[0]);
        CHECK(furthest(times(triangle, y, n, n, 5, adjoint), values_of_matrix(b)) < 1e-8);
      }
    }
    const auto logs = run("LogMatrixDeterminant", {matrix(a, n, n)});
    double sum = 0;
    for (std::int64_t i = 0; i < n; ++i) sum += 2 * std::log(l[std::size_t(i * (n + 1))]);
    CHECK(at(logs[0], 0) == 1);
    CHECK(at(logs[1], 0) == doctest::Approx(sum).epsilon(1e-12));
  }
}

TEST_CASE("q and r of a wide matrix have gradients where its shape is known") {
  std::mt19937_64 rng(5);
  const Tensor a = random_f64(rng, {2, 2, 4}), by_q = random_f64(rng, {2, 2, 2}),
               by_r = random_f64(rng, {2, 2, 4});
  Graph g;
  const Output x = placeholder(g, DType::f64, {2, 2, 4});
  const auto [q, r] = qr(x);
  const Output loss = sum(q * constant(g, by_q)) + sum(r * constant(g, by_r));
  const Output dx = gradients(loss, {x})[0];
  Interpreter run(g);
  const auto at_value = [&](const Output& y, const Tensor& v) {
    return run.run({y}, {}, {{x.node(), v}})[0];
  };
  const Tensor slope = at_value(dx, a);
  for (std::int64_t i = 0; i < a.elements(); ++i) {
    double sides[2];
    for (int s : {0, 1}) {
      Tensor moved = a.clone().value();
      moved.mutable_data<double>()[i] += s == 0 ? 1e-6 : -1e-6;
      sides[s] = at_value(loss, moved).item<double>();
    }
    CHECK(at(slope, i) == doctest::Approx((sides[0] - sides[1]) / 2e-6).epsilon(1e-6).scale(1));
  }
}

TEST_CASE("singular values have finite gradients where some of them are only rounding") {
  std::mt19937_64 rng(6);
  Graph g;
  const Output x = placeholder(g, DType::f32, {4, 4});
  const Output dx = gradients(sum(svd(x).s), {x})[0];
  for (double size : {1.0, 1e-4, 1e-12, 0.0}) {
    const Tensor a = to_f32(matrix(drawn_matrix(rng, 4, 4, 1, size), 4, 4));
    const Tensor slope = Interpreter(g).run({dx}, {}, {{x.node(), a}})[0];
    for (float v : slope.span<float>()) CHECK(std::abs(v) < 5);
  }
}

TEST_CASE("trace adds up diagonals, of a batch too") {
  Graph g;
  const Output x = constant(g, Shape{2, 2, 2}, {1.f, 2.f, 3.f, 4.f, 5.f, 6.f, 7.f, 8.f});
  const Tensor y = Interpreter(g).run({trace(x)})[0];
  CHECK(Tensor::same(y, Tensor::of<float>(Shape{2}, {5, 13})));
}

}  // namespace troupe::test
