#include "ops/complex/fft.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <mutex>

#include "devices/chunks.hpp"
#include "ops/complex/dft.hpp"
#include "ops/kernels/support/strided.hpp"
#include "ops/kernels/support/typed.hpp"

namespace troupe {
namespace {

using Kind = FftOp::Kind;

// Coefficients that are kept of a transform of n real numbers: the others are their conjugates.
std::int64_t half_of(std::int64_t n) { return n == 0 ? 0 : n / 2 + 1; }

// The lengths that are transformed, of which `given` are the last dimensions of x: what fft_length
// says or, in its place, the dimensions themselves.
Expected<std::vector<std::int64_t>> lengths(const FftOp& op, std::vector<std::int64_t> given,
                                            const std::vector<std::int64_t>& fft_length) {
  const bool halved = op.kind == Kind::hermitian;
  if (halved && given.back() >= 0)  // one that is too large stays so
    given.back() = 2 * std::clamp<std::int64_t>(given.back() - 1, 0, kLongestDft);
  if (!fft_length.empty()) {
    if (fft_length.size() != given.size())
      return invalid_argument(
          fmt::format("fft_length has {} entries; {} dimensions are transformed", fft_length.size(),
                      given.size()));
    given = fft_length;
    for (std::int64_t n : given)
      if (n < 0) return invalid_argument(fmt::format("fft_length {} is negative", n));
  }
  for (std::int64_t n : given) TROUPE_TRY(check_dft_length(n));
  return given;
}

Status too_few_dimensions(int rank, std::string_view shape) {
  return invalid_argument(fmt::format("x is {}; {} dimensions are transformed", shape, rank));
}

// `shape` with other last dimensions.
Expected<Shape> with_last(const Shape& shape, std::span<const std::int64_t> last) {
  std::vector<std::int64_t> dims(shape.dims().begin(), shape.dims().end());
  std::copy(last.begin(), last.end(), dims.end() - std::ptrdiff_t(last.size()));
  return Shape::make(dims);
}

template <class R>
class FftKernel final : public Kernel {
 public:
  using Z = std::complex<R>;

  FftKernel(const KernelSpec& spec, const FftOp& op) : op_(op), norm_(spec.string_attr("norm")) {
    if (op.kind != Kind::complex) fft_length_ = spec.ints_attr("fft_length");
  }

  Status compute(KernelContext& ctx) override {
    const Tensor& x = ctx.input(0);
    if (x.rank() < op_.rank) return too_few_dimensions(op_.rank, x.shape().text());
    TROUPE_TRY(Tensor y, transformed(ctx, x));
    ctx.set_output(0, std::move(y));
    return ok_status();
  }

 private:
  Expected<Tensor> transformed(const KernelContext& ctx, const Tensor& x) {
    switch (op_.kind) {
      case Kind::complex: {
        for (std::int64_t n : last_of(x.shape())) TROUPE_TRY(check_dft_length(n));
        TROUPE_TRY(Tensor w, resized(ctx, x, x.shape()));
        const int last = x.rank() - 1;
        for (int i = 0; i < op_.rank; ++i)
          TROUPE_TRY(
              along(ctx, w, last - i, op_.inverse, i == 0 ? scale(last_of(x.shape())) : R(1)));
        return w;
      }
      case Kind::real: {
        TROUPE_TRY(const auto n, lengths(op_, last_of(x.shape()), fft_length_));
        TROUPE_TRY(const Shape shape, with_last(x.shape(), n));
        TROUPE_TRY(const Tensor fitted, resized(ctx, x, shape));
        TROUPE_TRY(Tensor w, to_half(ctx, fitted, scale(n), R(1)));
        TROUPE_TRY(outer(ctx, w, false));
        return w;
      }
      case Kind::hermitian: {
        TROUPE_TRY(const auto n, lengths(op_, last_of(x.shape()), fft_length_));
        auto kept = n;
        kept.back() = half_of(n.back());
        TROUPE_TRY(const Shape shape, with_last(x.shape(), kept));
        TROUPE_TRY(Tensor w, resized(ctx, x, shape));
        TROUPE_TRY(outer(ctx, w, true));
        return from_half(ctx, w, n.back(), scale(n), true);
      }
      case Kind::real_grad: {
        TROUPE_TRY(const Shape shape, shape_of_gradient(ctx));
        TROUPE_TRY(const auto n, lengths(op_, last_of(shape), fft_length_));
        auto kept = n;
        kept.back() = half_of(n.back());
        TROUPE_TRY(check(x, kept));
        TROUPE_TRY(Tensor w, resized(ctx, x, x.shape()));
        TROUPE_TRY(outer(ctx, w, true));
        TROUPE_TRY(const Tensor y, from_half(ctx, w, n.back(), scale(n), false));
        return resized(ctx, y, shape);
      }
      default: {
        TROUPE_TRY(const Shape shape, shape_of_gradient(ctx));
        FftOp forward = op_;
        forward.kind = Kind::hermitian;
        TROUPE_TRY(const auto n, lengths(forward, last_of(shape), fft_length_));
        TROUPE_TRY(check(x, n));
        TROUPE_TRY(Tensor w, to_half(ctx, x, scale(n), R(2)));
        TROUPE_TRY(outer(ctx, w, false));
        return resized(ctx, w, shape);
      }
    }
  }

  std::vector<std::int64_t> last_of(const Shape& shape) const {
    const auto dims = shape.dims().last(std::size_t(op_.rank));
    return {dims.begin(), dims.end()};
  }
  // Input 1: the shape of what the op was given whose gradient this is.
  Expected<Shape> shape_of_gradient(const KernelContext& ctx) const {
    TROUPE_TRY(Shape shape, Shape::make(ctx.input(1).span<std::int64_t>()));
    const Shape& dy = ctx.input(0).shape();
    const auto leading = std::size_t(dy.rank() - op_.rank);
    if (shape.rank() != dy.rank() ||
        !std::ranges::equal(shape.dims().first(leading), dy.dims().first(leading)))
      return invalid_argument(fmt::format("dy is {} for {}", dy.text(), shape.text()));
    return shape;
  }
  Status check(const Tensor& dy, const std::vector<std::int64_t>& last) const {
    if (last_of(dy.shape()) == last) return ok_status();
    return invalid_argument(
        fmt::format("dy is {}, not [..., {}]", dy.shape().text(), fmt::join(last, ",")));
  }

  R scale(const std::vector<std::int64_t>& n) const {
    double product = 1;
    for (std::int64_t length : n) product *= double(length);
    if (norm_ == "ortho") return R(1 / std::sqrt(product));
    return op_.inverse == (norm_ == "backward") ? R(1 / product) : R(1);
  }

  Expected<std::shared_ptr<const DftPlan<R>>> plan(std::int64_t n) {
    std::lock_guard lock(mutex_);
    if (auto at = plans_.find(n); at != plans_.end()) return at->second;
    TROUPE_TRY(auto made, DftPlan<R>::make(n));
    if (plans_.size() == kMostPlans) plans_.clear();
    return plans_[n] = std::move(made);
  }

  // A copy of x, cut off or filled up with zeros at the end of its dimensions.
  static Expected<Tensor> resized(const KernelContext& ctx, const Tensor& x, const Shape& shape) {
    TROUPE_TRY(Tensor y, ctx.allocate(x.dtype(), shape));
    Shape common = shape;
    for (int i = 0; i < shape.rank(); ++i) common.set_dim(i, std::min(shape.dim(i), x.dim(i)));
    if (common != shape && y.bytes() != 0) std::memset(y.mutable_raw(), 0, y.bytes());
    if (common.elements() == 0) return y;
    const auto size = std::int64_t(dtype_size(x.dtype()));
    const char* from = static_cast<const char*>(x.raw());
    char* to = static_cast<char*>(y.mutable_raw());
    const Chunks chunks = row_chunks(row_count(common), common.dim(common.rank() - 1));
    ctx.parallel(chunks.count, [&](std::int64_t c) {
      strided_rows(common, strides_of(x.shape()), strides_of(shape), chunks[c],
                   [&](std::int64_t a, std::int64_t b, std::int64_t n) {
                     std::memcpy(to + b * size, from + a * size, std::size_t(n * size));
                   });
    });
    return y;
  }

  // Calls row(transform, i) for each of `rows` transforms of n elements, on all lanes.
  template <class Row>
  Status each_row(const KernelContext& ctx, std::int64_t rows, std::int64_t n, Row&& row) {
    if (rows == 0 || n == 0) return ok_status();
    TROUPE_TRY(const auto shared, plan(n));
    const Chunks chunks = row_chunks(rows, n);
    return parallel_chunks(ctx, chunks.count, [&](std::int64_t c) -> Status {
      TROUPE_TRY(auto transform, Dft<R>::make(*shared));
      TROUPE_TRY(Tensor lines, ctx.allocate(dtype_of<Z>, Shape{2, n}));
      Z* in = lines.mutable_data<Z>();
      for (std::int64_t i = chunks[c].begin; i < chunks[c].end; ++i)
        row(i, in, in + n, [&](bool inverse) { transform(in, in + n, inverse); });
      return ok_status();
    });
  }

  // Transforms dimension `axis` of w in place.
  Status along(const KernelContext& ctx, Tensor& w, int axis, bool inverse, R scale) {
    const std::int64_t n = w.dim(axis), inner = w.shape().elements(axis + 1, w.rank());
    Z* all = w.mutable_data<Z>();
    if (w.elements() == 0) return ok_status();
    return each_row(ctx, w.elements() / n, n, [&](std::int64_t i, Z* in, Z* out, auto transform) {
      Z* line = all + i / inner * n * inner + i % inner;
      for (std::int64_t k = 0; k < n; ++k) in[k] = line[k * inner];
      transform(inverse);
      for (std::int64_t k = 0; k < n; ++k) line[k * inner] = out[k] * scale;
    });
  }
  // The same of the transformed dimensions but for the last.
  Status outer(const KernelContext& ctx, Tensor& w, bool inverse) {
    for (int i = 1; i < op_.rank; ++i) TROUPE_TRY(along(ctx, w, w.rank() - 1 - i, inverse, R(1)));
    return ok_status();
  }

  // The first half of the transforms of rows of real numbers. `doubled`: the factor of what also
  // stands for its conjugate, which is neither the first coefficient nor the middle one.
  Expected<Tensor> to_half(const KernelContext& ctx, const Tensor& x, R scale, R doubled) {
    const std::int64_t n = x.dim(x.rank() - 1), m = half_of(n);
    Shape shape = x.shape();
    shape.set_dim(x.rank() - 1, m);
    TROUPE_TRY(Tensor y, ctx.allocate(dtype_of<Z>, shape));
    const R* from = x.data<R>();
    Z* to = y.mutable_data<Z>();
    const std::int64_t rows = n == 0 ? 0 : x.elements() / n;
    TROUPE_TRY(each_row(ctx, rows, n, [&](std::int64_t i, Z* in, Z* out, auto transform) {
      std::copy_n(from + i * n, n, in);
      transform(false);
      for (std::int64_t k = 0; k < m; ++k)
        to[i * m + k] = k == 0 || 2 * k == n ? Z(out[k].real() * scale)  // exactly real
                                             : out[k] * (scale * doubled);
    }));
    return y;
  }
  // The real parts of inverse transforms of n elements, of which w has the first half. The others
  // are the conjugates if `mirrored`, else zeros.
  Expected<Tensor> from_half(const KernelContext& ctx, const Tensor& w, std::int64_t n, R scale,
                             bool mirrored) {
    const std::int64_t m = half_of(n);
    Shape shape = w.shape();
    shape.set_dim(w.rank() - 1, n);
    TROUPE_TRY(shape, Shape::make(shape.dims()));
    TROUPE_TRY(Tensor y, ctx.allocate(dtype_of<R>, shape));
    const Z* from = w.data<Z>();
    R* to = y.mutable_data<R>();
    const std::int64_t rows = n == 0 ? 0 : y.elements() / n;
    TROUPE_TRY(each_row(ctx, rows, n, [&](std::int64_t i, Z* in, Z* out, auto transform) {
      std::copy_n(from + i * m, m, in);
      std::fill(in + m, in + n, Z());
      if (mirrored) {  // the imaginary parts of those that have no conjugate do not count
        in[0] = in[0].real();
        if (n % 2 == 0) in[m - 1] = in[m - 1].real();
        for (std::int64_t k = m; k < n; ++k) in[k] = std::conj(in[n - k]);
      }
      transform(true);
      for (std::int64_t k = 0; k < n; ++k) to[i * n + k] = out[k].real() * scale;
    }));
    return y;
  }

  static constexpr std::size_t kMostPlans = 8;

  const FftOp op_;
  const std::string norm_;
  std::vector<std::int64_t> fft_length_;
  std::mutex mutex_;
  std::map<std::int64_t, std::shared_ptr<const DftPlan<R>>> plans_;  // by length
};

}  // namespace

Expected<PartialShape> fft_shape(const FftOp& op, const PartialShape& x,
                                 const std::vector<std::int64_t>& fft_length) {
  if (!x.known_rank()) {
    TROUPE_TRY(lengths(op, std::vector<std::int64_t>(std::size_t(op.rank), -1), fft_length));
    return PartialShape();
  }
  if (x.rank() < op.rank) return too_few_dimensions(op.rank, x.text());
  std::vector<std::int64_t> dims(x.dims().begin(), x.dims().end());
  const auto first = dims.end() - op.rank;
  TROUPE_TRY(auto n, lengths(op, {first, dims.end()}, fft_length));
  if (op.kind == Kind::real && n.back() >= 0) n.back() = half_of(n.back());
  std::copy(n.begin(), n.end(), first);
  return PartialShape::make(dims);
}

Expected<std::unique_ptr<Kernel>> fft_kernel(const KernelSpec& spec, const FftOp& op) {
  if (spec.type() == DType::f32 || spec.type() == DType::c64)
    return std::unique_ptr<Kernel>(new FftKernel<float>(spec, op));
  return std::unique_ptr<Kernel>(new FftKernel<double>(spec, op));
}

}  // namespace troupe
