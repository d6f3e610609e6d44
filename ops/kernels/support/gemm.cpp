#include "ops/kernels/support/gemm.hpp"

#include <Eigen/Core>
#include <algorithm>
#include <type_traits>

#if TROUPE_ONEDNN
#include "ops/onednn/onednn.hpp"
#endif

namespace troupe {
namespace {

template <class T>
using EigenRows = Eigen::Map<
    std::conditional_t<std::is_const_v<T>,
                       const Eigen::Matrix<std::remove_const_t<T>, Eigen::Dynamic, Eigen::Dynamic,
                                           Eigen::RowMajor>,
                       Eigen::Matrix<T, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>>,
    0, Eigen::OuterStride<>>;

template <class T>
EigenRows<T> eigen_rows(Matrix<T> x, std::int64_t rows, std::int64_t cols) {
  return EigenRows<T>(x.data, rows, cols, Eigen::OuterStride<>(x.stride));
}

template <class T>
void float_gemm(std::int64_t m, std::int64_t n, std::int64_t k, Matrix<const T> a,
                Matrix<const T> b, bool accumulate, Matrix<T> c) {
  auto out = eigen_rows(c, m, n);
  if (!accumulate) out.setZero();
  auto left = eigen_rows(a, a.transpose ? k : m, a.transpose ? m : k);
  auto right = eigen_rows(b, b.transpose ? n : k, b.transpose ? k : n);
  if (a.transpose && b.transpose)
    out.noalias() += left.transpose() * right.transpose();
  else if (a.transpose)
    out.noalias() += left.transpose() * right;
  else if (b.transpose)
    out.noalias() += left * right.transpose();
  else
    out.noalias() += left * right;
}

// Rows of C as sums of rows of B: unit stride where b is not transposed. Unsigned arithmetic, so
// that overflow wraps as it does elsewhere.
template <class T>
void integer_gemm(std::int64_t m, std::int64_t n, std::int64_t k, Matrix<const T> a,
                  Matrix<const T> b, bool accumulate, Matrix<T> c) {
  using U = std::make_unsigned_t<T>;
  for (std::int64_t i = 0; i < m; ++i) {
    T* row = c.data + i * c.stride;
    if (!accumulate) std::fill_n(row, n, T(0));
    for (std::int64_t p = 0; p < k; ++p) {
      U factor = U(a.transpose ? a.data[p * a.stride + i] : a.data[i * a.stride + p]);
      for (std::int64_t j = 0; j < n; ++j) {
        U value = U(b.transpose ? b.data[j * b.stride + p] : b.data[p * b.stride + j]);
        row[j] = T(U(row[j]) + factor * value);
      }
    }
  }
}

#if TROUPE_ONEDNN
// Where Eigen is the faster, up to 9 times: with few multiplications, but not of long rows. A process
// whose products are all such is spared what oneDNN does before its first: it generates code, for
// 26 ms on AVX-512 and 10 ms on AVX2.
bool is_eigens(std::int64_t m, std::int64_t n, std::int64_t k) {
  return double(m) * double(n) * double(k) <= 4096 && std::max({m, n, 4 * k}) <= 256;
}
#endif

}  // namespace

template <class T>
Status gemm(std::int64_t m, std::int64_t n, std::int64_t k, Matrix<const T> a, Matrix<const T> b,
            bool accumulate, Matrix<T> c) {
  if (m == 0 || n == 0) return ok_status();
  if (k == 0) {
    for (std::int64_t i = 0; !accumulate && i < m; ++i) std::fill_n(c.data + i * c.stride, n, T(0));
    return ok_status();
  }
#if TROUPE_ONEDNN
  if constexpr (std::is_same_v<T, float>)
    if (!is_eigens(m, n, k))
      return onednn::sgemm(a.transpose, b.transpose, m, n, k, a.data, a.stride, b.data, b.stride,
                           accumulate ? 1.0f : 0.0f, c.data, c.stride);
#endif
  if constexpr (std::is_integral_v<T>)
    integer_gemm(m, n, k, a, b, accumulate, c);
  else
    float_gemm(m, n, k, a, b, accumulate, c);
  return ok_status();
}

template Status gemm(std::int64_t, std::int64_t, std::int64_t, Matrix<const float>,
                     Matrix<const float>, bool, Matrix<float>);
template Status gemm(std::int64_t, std::int64_t, std::int64_t, Matrix<const double>,
                     Matrix<const double>, bool, Matrix<double>);
template Status gemm(std::int64_t, std::int64_t, std::int64_t, Matrix<const std::int32_t>,
                     Matrix<const std::int32_t>, bool, Matrix<std::int32_t>);
template Status gemm(std::int64_t, std::int64_t, std::int64_t, Matrix<const std::int64_t>,
                     Matrix<const std::int64_t>, bool, Matrix<std::int64_t>);

}  // namespace troupe
