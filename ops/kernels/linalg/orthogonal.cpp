#include "ops/kernels/linalg/orthogonal.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

namespace troupe {

namespace {

constexpr double kEps = std::numeric_limits<double>::epsilon();

// Eight sums side by side, so that the order does not depend on how wide registers are.
double dot(const double* a, const double* b, std::int64_t n) {
  double sums[8] = {};
  std::int64_t i = 0;
  for (; i + 8 <= n; i += 8)
    for (int k = 0; k < 8; ++k) sums[k] += a[i + k] * b[i + k];
  double rest = 0;
  for (; i < n; ++i) rest += a[i] * b[i];
  return ((sums[0] + sums[1]) + (sums[2] + sums[3])) + ((sums[4] + sums[5]) + (sums[6] + sums[7])) +
         rest;
}
void add_scaled(double* to, const double* from, double factor, std::int64_t n) {
#pragma omp simd
  for (std::int64_t j = 0; j < n; ++j) to[j] += factor * from[j];
}
void scale(double* x, double factor, std::int64_t n) {
  for (std::int64_t j = 0; j < n; ++j) x[j] *= factor;
}
// (p, q) = (c p - s q, s p + c q)
void rotate(double* p, double* q, double c, double s, std::int64_t n) {
#pragma omp simd
  for (std::int64_t j = 0; j < n; ++j) {
    const double a = p[j], b = q[j];
    p[j] = c * a - s * b;
    q[j] = s * a + c * b;
  }
}

// A power of two that brings the largest element to [1, 2), where squares neither overflow nor
// vanish; applied, and undone by its inverse. An exponent, since 2^1074 is no double.
int normalise(std::vector<double>& a) {
  double top = 0;
  for (double x : a) top = std::max(top, std::abs(x));
  if (top == 0) return 0;
  const int exponent = std::ilogb(top);
  for (double& x : a) x = std::scalbn(x, -exponent);
  return exponent;
}
void scale_back(std::vector<double>& a, int exponent) {
  for (double& x : a) x = std::scalbn(x, exponent);
}

// The reflection 1 - tau v v^T that turns x (n elements) into (beta, 0, ...); v replaces x, and
// v[0] is 1. tau is 0 where nothing is to be turned.
struct Reflection {
  double tau = 0, beta = 0;
};
Reflection reflection_of(double* x, std::int64_t n) {
  double top = 0;
  for (std::int64_t i = 1; i < n; ++i) top = std::max(top, std::abs(x[i]));
  if (top == 0) {
    const double kept = x[0];
    x[0] = 1;
    return {0, kept};
  }
  // Near 1, where squares keep their digits.
  const int exponent = std::ilogb(std::max(top, std::abs(x[0])));
  for (std::int64_t i = 0; i < n; ++i) x[i] = std::scalbn(x[i], -exponent);
  const double rest = dot(x + 1, x + 1, n - 1), first = x[0];
  x[0] = 1;
  if (rest == 0) return {0, std::scalbn(first, exponent)};
  const double length = std::sqrt(first * first + rest);
  const double beta = first <= 0 ? length : -length;  // no cancellation in first - beta
  scale(x + 1, 1 / (first - beta), n - 1);
  return {(beta - first) / beta, std::scalbn(beta, exponent)};
}
// The reflection applied to `rows` rows of `columns` columns.
void reflect(double* a, std::int64_t rows, std::int64_t columns, std::int64_t stride,
             const double* v, double tau, std::vector<double>& sums) {
  if (tau == 0 || columns == 0) return;
  std::fill_n(sums.begin(), columns, 0.0);
  for (std::int64_t i = 0; i < rows; ++i) add_scaled(sums.data(), a + i * stride, v[i], columns);
  for (std::int64_t i = 0; i < rows; ++i)
    add_scaled(a + i * stride, sums.data(), -tau * v[i], columns);
}

// Whether the sign of x must change: its first large element is negative.
bool faces_down(const double* x, std::int64_t n) {
  double top = 0;
  for (std::int64_t i = 0; i < n; ++i) top = std::max(top, std::abs(x[i]));
  for (std::int64_t i = 0; i < n; ++i)
    if (std::abs(x[i]) >= top / 2) return x[i] < 0;
  return false;
}

// A unit vector orthogonal to the first `count` rows, which are: the axis that is furthest from
// what they span, made orthogonal twice.
void complete(double* rows, std::int64_t count, std::int64_t n) {
  std::vector<double> inside(std::size_t(n), 0.0);
  for (std::int64_t i = 0; i < count; ++i)
    for (std::int64_t j = 0; j < n; ++j)
      inside[std::size_t(j)] += rows[i * n + j] * rows[i * n + j];
  double* x = rows + count * n;
  std::fill_n(x, n, 0.0);
  x[std::min_element(inside.begin(), inside.end()) - inside.begin()] = 1;
  for (int pass = 0; pass < 2; ++pass) {
    for (std::int64_t i = 0; i < count; ++i)
      add_scaled(x, rows + i * n, -dot(x, rows + i * n, n), n);
    scale(x, 1 / std::sqrt(dot(x, x, n)), n);
  }
}

// Makes the rows of w (k x k) orthogonal to each other by rotations of two of them, which are done
// to `turned` as well: Jacobi's method from one side.
bool orthogonalise_rows(double* w, double* turned, std::int64_t k) {
  for (int sweep = 0; sweep < 60; ++sweep) {
    bool done = true;
    for (std::int64_t p = 0; p < k; ++p)
      for (std::int64_t q = p + 1; q < k; ++q) {
        double *x = w + p * k, *y = w + q * k;
        const double a = dot(x, x, k), b = dot(y, y, k), c = dot(x, y, k);
        const double both = std::sqrt(a) * std::sqrt(b);
        if (!(std::abs(c) > 4 * kEps * both) || both < 1e-280) continue;
        done = false;
        const double zeta = (b - a) / (2 * c);
        const double t = std::copysign(1 / (std::abs(zeta) + std::hypot(1.0, zeta)), zeta);
        const double cosine = 1 / std::sqrt(1 + t * t);
        rotate(x, y, cosine, cosine * t, k);
        rotate(turned + p * k, turned + q * k, cosine, cosine * t, k);
      }
    if (done) return true;
  }
  return false;
}

// Beside a largest element of about 1: far below what rounding changes.
constexpr double kNothing = 1e-60;

// Eigenvalues of a symmetric tridiagonal matrix by implicit QL steps; `rows` are turned along.
bool solve_tridiagonal(std::vector<double>& d, std::vector<double>& e, double* rows,
                       std::int64_t n) {
  const auto at = [](std::int64_t i) { return std::size_t(i); };
  for (std::int64_t l = 0; l < n; ++l)
    for (int step = 0;; ++step) {
      std::int64_t m = l;
      while (m + 1 < n &&
             !(std::abs(e[at(m)]) <= kEps * (std::abs(d[at(m)]) + std::abs(d[at(m + 1)])) ||
               std::abs(e[at(m)]) < kNothing))
        ++m;
      if (m == l) break;
      if (step == 60) return false;
      double g = (d[at(l + 1)] - d[at(l)]) / (2 * e[at(l)]);
      g = d[at(m)] - d[at(l)] + e[at(l)] / (g + std::copysign(std::hypot(g, 1.0), g));
      double s = 1, c = 1, shift = 0;
      std::int64_t i = m - 1;
      for (; i >= l; --i) {
        const double f = s * e[at(i)], b = c * e[at(i)], r = std::hypot(f, g);
        e[at(i + 1)] = r;
        if (r == 0) {
          d[at(i + 1)] -= shift;
          e[at(m)] = 0;
          break;
        }
        s = f / r;
        c = g / r;
        g = d[at(i + 1)] - shift;
        const double t = (d[at(i)] - g) * s + 2 * c * b;
        shift = s * t;
        d[at(i + 1)] = g + shift;
        g = c * t - b;
        rotate(rows + i * n, rows + (i + 1) * n, c, s, n);
      }
      if (i >= l) continue;
      d[at(l)] -= shift;
      e[at(l)] = g;
      e[at(m)] = 0;
    }
  return true;
}

std::vector<std::int64_t> order_of(const std::vector<double>& values, bool descending) {
  std::vector<std::int64_t> order(values.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](std::int64_t a, std::int64_t b) {
    const double x = values[std::size_t(a)], y = values[std::size_t(b)];
    return descending ? x > y : x < y;
  });
  return order;
}

// The decomposition for m >= n. Of a = q r, the rows of r are made orthogonal: turned r = diag(s)
// v^T, and u = q turned^T.
bool tall_singular_values(std::vector<double> a, std::int64_t m, std::int64_t k,
                          SingularValues& out) {
  const int exponent = normalise(a);
  QrFactors qr = qr_factors(std::move(a), m, k);
  std::vector<double>& w = qr.r;
  std::vector<double> turned(std::size_t(k * k), 0.0), lengths(std::size_t(k), 0.0);
  for (std::int64_t i = 0; i < k; ++i) turned[std::size_t(i * k + i)] = 1;
  if (!orthogonalise_rows(w.data(), turned.data(), k)) return false;
  for (std::int64_t i = 0; i < k; ++i) {
    const double* row = w.data() + i * k;
    lengths[std::size_t(i)] = std::sqrt(dot(row, row, k));
  }
  std::vector<double> ut(std::size_t(k * m), 0.0), vt(std::size_t(k * k), 0.0);
  const auto order = order_of(lengths, true);
  out.s.assign(std::size_t(k), 0.0);
  for (std::int64_t i = 0; i < k; ++i) {
    const std::int64_t from = order[std::size_t(i)];
    const double length = lengths[std::size_t(from)];
    double *u = ut.data() + i * m, *v = vt.data() + i * k;
    for (std::int64_t j = 0; j < m; ++j)
      u[j] = dot(qr.q.data() + j * k, turned.data() + from * k, k);
    if (length < 1e-140) {  // of the largest, which is about 1
      complete(vt.data(), i, k);
    } else {
      out.s[std::size_t(i)] = length;
      std::copy_n(w.data() + from * k, k, v);
      scale(v, 1 / length, k);
    }
    if (!faces_down(u, m)) continue;
    scale(u, -1, m);
    scale(v, -1, k);
  }
  out.u = transposed_matrix(ut, k, m);
  out.v = transposed_matrix(vt, k, k);
  scale_back(out.s, exponent);
  return true;
}

}  // namespace

std::vector<double> transposed_matrix(const std::vector<double>& a, std::int64_t rows,
                                      std::int64_t columns) {
  std::vector<double> out(a.size());
  for (std::int64_t i = 0; i < rows; ++i)
    for (std::int64_t j = 0; j < columns; ++j)
      out[std::size_t(j * rows + i)] = a[std::size_t(i * columns + j)];
  return out;
}

QrFactors qr_factors(std::vector<double> a, std::int64_t m, std::int64_t n, bool full) {
  const int exponent = normalise(a);
  const std::int64_t steps = std::min(m, n), k = full ? m : steps;
  std::vector<double> vectors(std::size_t(steps * m)), taus(std::size_t(steps), 0.0);
  std::vector<double> sums(std::size_t(std::max(n, k)));
  for (std::int64_t j = 0; j < steps; ++j) {
    double* v = vectors.data() + j * m;
    for (std::int64_t i = j; i < m; ++i) v[i - j] = a[std::size_t(i * n + j)];
    const Reflection turn = reflection_of(v, m - j);
    taus[std::size_t(j)] = turn.tau;
    a[std::size_t(j * n + j)] = turn.beta;
    for (std::int64_t i = j + 1; i < m; ++i) a[std::size_t(i * n + j)] = 0;
    reflect(a.data() + j * n + j + 1, m - j, n - j - 1, n, v, turn.tau, sums);
  }
  QrFactors out;
  out.q.assign(std::size_t(m * k), 0.0);
  for (std::int64_t i = 0; i < k; ++i) out.q[std::size_t(i * k + i)] = 1;
  for (std::int64_t j = steps - 1; j >= 0; --j)
    reflect(out.q.data() + j * k + j, m - j, k - j, k, vectors.data() + j * m, taus[std::size_t(j)],
            sums);
  out.r.assign(a.begin(), a.begin() + std::ptrdiff_t(k * n));
  for (std::int64_t j = 0; j < steps; ++j) {
    if (!(out.r[std::size_t(j * n + j)] < 0)) continue;
    scale(out.r.data() + j * n + j, -1, n - j);
    for (std::int64_t i = 0; i < m; ++i) out.q[std::size_t(i * k + j)] *= -1;
  }
  scale_back(out.r, exponent);
  return out;
}

bool singular_values(const std::vector<double>& a, std::int64_t m, std::int64_t n,
                     SingularValues& out) {
  if (m >= n) return tall_singular_values(a, m, n, out);
  if (!tall_singular_values(transposed_matrix(a, m, n), n, m, out)) return false;
  std::swap(out.u, out.v);
  const std::int64_t k = m;
  for (std::int64_t j = 0; j < k; ++j) {  // by the columns of what now is u
    std::vector<double> column(std::size_t(m), 0.0);
    for (std::int64_t i = 0; i < m; ++i) column[std::size_t(i)] = out.u[std::size_t(i * k + j)];
    if (!faces_down(column.data(), m)) continue;
    for (std::int64_t i = 0; i < m; ++i) out.u[std::size_t(i * k + j)] *= -1;
    for (std::int64_t i = 0; i < n; ++i) out.v[std::size_t(i * k + j)] *= -1;
  }
  return true;
}

bool symmetric_eigenvalues(const std::vector<double>& a, std::int64_t n, Eigenvalues& out) {
  std::vector<double> x(a.size());
  for (std::int64_t i = 0; i < n; ++i)
    for (std::int64_t j = 0; j < n; ++j)
      x[std::size_t(i * n + j)] = a[std::size_t(i * n + j)] / 2 + a[std::size_t(j * n + i)] / 2;
  const int exponent = normalise(x);
  // x becomes tridiagonal: each reflection from both sides, as one symmetric change of rank 2.
  std::vector<double> vectors(std::size_t(n * n)), taus(std::size_t(n), 0.0),
      p(std::size_t(n), 0.0);
  std::vector<double> off(std::size_t(n), 0.0);
  for (std::int64_t j = 0; j + 1 < n; ++j) {
    const std::int64_t size = n - j - 1;
    double* v = vectors.data() + j * n;
    std::copy_n(x.data() + j * n + j + 1, size, v);
    const Reflection turn = reflection_of(v, size);
    off[std::size_t(j)] = turn.beta;
    taus[std::size_t(j)] = turn.tau;
    if (turn.tau == 0) continue;
    double* corner = x.data() + (j + 1) * n + j + 1;
    for (std::int64_t i = 0; i < size; ++i)
      p[std::size_t(i)] = turn.tau * dot(corner + i * n, v, size);
    add_scaled(p.data(), v, -turn.tau / 2 * dot(p.data(), v, size), size);
    for (std::int64_t i = 0; i < size; ++i) {
      add_scaled(corner + i * n, p.data(), -v[i], size);
      add_scaled(corner + i * n, v, -p[std::size_t(i)], size);
    }
  }
  out.e.assign(std::size_t(n), 0.0);
  for (std::int64_t i = 0; i < n; ++i) out.e[std::size_t(i)] = x[std::size_t(i * n + i)];
  // The product of the reflections, transposed: its rows become the eigenvectors.
  std::vector<double> q(std::size_t(n * n), 0.0), sums(std::size_t(n), 0.0);
  for (std::int64_t i = 0; i < n; ++i) q[std::size_t(i * n + i)] = 1;
  for (std::int64_t j = n - 2; j >= 0; --j)
    reflect(q.data() + (j + 1) * n + j + 1, n - j - 1, n - j - 1, n, vectors.data() + j * n,
            taus[std::size_t(j)], sums);
  q = transposed_matrix(q, n, n);
  if (!solve_tridiagonal(out.e, off, q.data(), n)) return false;
  const auto order = order_of(out.e, false);
  std::vector<double> sorted(out.e.size());
  out.v.assign(std::size_t(n * n), 0.0);
  for (std::int64_t j = 0; j < n; ++j) {
    const std::int64_t from = order[std::size_t(j)];
    sorted[std::size_t(j)] = out.e[std::size_t(from)];
    const double* row = q.data() + from * n;
    const double sign = faces_down(row, n) ? -1 : 1;
    for (std::int64_t i = 0; i < n; ++i) out.v[std::size_t(i * n + j)] = sign * row[i];
  }
  out.e = std::move(sorted);
  scale_back(out.e, exponent);
  return true;
}

}  // namespace troupe
