// Orthogonal decompositions of one matrix, in double whatever the matrix is of: plain loops over
// rows, in one order. Pure functions of finite matrices, row by row in memory.
#pragma once

#include <cstdint>
#include <vector>

namespace troupe {

// a (m x n) = q r, with k = min(m, n): q m x k of orthonormal columns, or m x m when `full`; r of
// as many rows, zero below a diagonal that is not negative. That makes both unique where a has full
// rank.
struct QrFactors {
  std::vector<double> q, r;
};
QrFactors qr_factors(std::vector<double> a, std::int64_t m, std::int64_t n, bool full = false);

// a (m x n) = u diag(s) v^T, k = min(m, n): u m x k and v n x k of orthonormal columns, s
// descending. Of each column of u, the first element of at least half the largest one's size is
// positive: otherwise both columns could change their signs.
struct SingularValues {
  std::vector<double> s, u, v;
};
// False where the sweeps did not converge.
bool singular_values(const std::vector<double>& a, std::int64_t m, std::int64_t n,
                     SingularValues& out);

// (a + a^T) / 2 = v diag(e) v^T, e ascending, v of orthonormal columns, with signs as those of u
// above.
struct Eigenvalues {
  std::vector<double> e, v;
};
bool symmetric_eigenvalues(const std::vector<double>& a, std::int64_t n, Eigenvalues& out);

std::vector<double> transposed_matrix(const std::vector<double>& a, std::int64_t rows,
                                      std::int64_t columns);

}  // namespace troupe
