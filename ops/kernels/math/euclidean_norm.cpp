// EuclideanNorm: the length of a tensor as one vector, in f64. Squares of f32 and shorter types
// neither overflow nor vanish there; those of f64 may, and are then taken of the elements times a
// power of two.
#include <cmath>
#include <limits>

#include "devices/chunks.hpp"
#include "ops/kernels/support/grad.hpp"
#include "ops/kernels/support/moments.hpp"
#include "ops/kernels/support/typed.hpp"
#include "ops/kernels/support/types.hpp"
#include "ops/op.hpp"

using namespace troupe;

namespace {

// The results of leaf(data, n) for the leaves of a sum, joined in a tree.
template <class T, class Leaf, class Join>
Expected<double> over_leaves(const KernelContext& c, const Tensor& x, Leaf leaf, Join join) {
  const Chunks leaves = sum_leaves(x.elements());
  if (leaves.count == 0) return 0.0;
  TROUPE_TRY(Tensor partials, c.allocate(DType::f64, Shape{leaves.count}));
  double* part = partials.mutable_data<double>();
  const Chunks chunks = sum_chunks(leaves.count);
  c.parallel(chunks.count, [&](std::int64_t k) {
    for (std::int64_t i = chunks[k].begin; i < chunks[k].end; ++i)
      part[i] = leaf(x.data<T>() + leaves[i].begin, leaves[i].size());
  });
  tree_sum(leaves.count,
           [&](std::int64_t to, std::int64_t from) { part[to] = join(part[to], part[from]); });
  return part[0];
}

template <class T>
Expected<double> sum_of_squares(const KernelContext& c, const Tensor& x, double by) {
  const auto leaf = [by](const T* v, std::int64_t n) {
    return row_sum<double>(n, [&](std::int64_t j) {
      const double scaled = double(Compute<T>(v[j])) * by;
      return scaled * scaled;
    });
  };
  return over_leaves<T>(c, x, leaf, [](double a, double b) { return a + b; });
}

template <class T>
Expected<double> largest(const KernelContext& c, const Tensor& x) {
  const auto leaf = [](const T* v, std::int64_t n) {
    double most = 0;
    for (std::int64_t j = 0; j < n; ++j) most = std::max(most, std::abs(double(Compute<T>(v[j]))));
    return most;
  };
  return over_leaves<T>(c, x, leaf, [](double a, double b) { return std::max(a, b); });
}

template <class T>
struct EuclideanNorm final : Kernel {
  Status compute(KernelContext& c) override {
    const Tensor& x = c.input(0);
    double by = 1;
    TROUPE_TRY(double squares, sum_of_squares<T>(c, x, by));
    if (squares > std::numeric_limits<double>::max() || squares < 1e-200) {
      TROUPE_TRY(const double most, largest<T>(c, x));
      if (most > 0 && std::isfinite(most)) {
        by = scale_of_squares(most);
        TROUPE_TRY(squares, sum_of_squares<T>(c, x, by));
      }
    }
    TROUPE_TRY(Tensor y, c.allocate(DType::f64, Shape{}));
    *y.mutable_data<double>() = std::sqrt(squares) / by;
    c.set_output(0, std::move(y));
    return ok_status();
  }
};

// x dy / y, and 0 where all of x is, even where dy is infinite.
std::vector<Output> norm_grad(GradContext& c) {
  const Output x = c.x[0], y = c.y[0], one = scalar_like(y, 1), zero = scalar_like(y, 0);
  const Output none = c.g.add("Equal", {y, zero});
  const Output factor = where(none, zero, divide(c.dy[0], where(none, one, y)));
  const Output wide = c.g.add("Cast", {x}, {{"to", DType::f64}});
  return {c.g.add("Cast", {multiply(wide, factor)}, {{"to", x.dtype()}})};
}

}  // namespace

TROUPE_OPS(euclidean_norm) {
  r.add({.name = "EuclideanNorm",
         .in = {"x"},
         .out = {"y: f64"},
         .types = kFloats,
         .shape = scalar_shape,
         .grad = norm_grad,
         .doc = "sqrt(sum(x^2)) over all elements, summed in f64 in a fixed order; the squares do "
                "not overflow. The gradient is 0 where the norm is 0."})
      .cpu(typed_kernel<EuclideanNorm, Floats>);
}
