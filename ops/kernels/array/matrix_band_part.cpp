// MatrixBandPart: what is near the diagonal of matrices. Triangles, diagonals.
#include <fmt/core.h>

#include "ops/kernels/support/args.hpp"
#include "ops/kernels/support/grad.hpp"
#include "ops/kernels/support/moves.hpp"
#include "ops/kernels/support/types.hpp"

using namespace troupe;

namespace {

Status band_shape(InferenceContext& c) {
  TROUPE_TRY(c.want_rank_at_least(0, 2));
  return same_shape(c);
}
struct MatrixBandPart final : Kernel {
  explicit MatrixBandPart(const KernelSpec& s)
      : lower(s.int_attr("lower")), upper(s.int_attr("upper")) {}
  Status compute(KernelContext& ctx) override {
    const Tensor& x = ctx.input(0);
    if (x.rank() < 2)
      return invalid_argument("x must have rank 2 or more, not " + x.shape().text());
    TROUPE_TRY(Tensor y, ctx.allocate(x.dtype(), x.shape()));
    const std::int64_t m = x.dim(x.rank() - 2), n = x.dim(x.rank() - 1);
    const Moves moves(x.dtype());
    const std::size_t size = dtype_size(x.dtype());
    const void* from = x.raw();
    void* to = y.mutable_raw();
    const Chunks chunks = row_chunks(x.shape().elements(0, x.rank() - 1), n);
    if (y.elements() != 0)
      ctx.parallel(chunks.count, [&](std::int64_t c) {
        for (std::int64_t k = chunks[c].begin; k < chunks[c].end; ++k) {
          const std::int64_t i = k % m, first = k * n;
          // Columns [begin, end) are kept. Compared before they are added: both may be huge.
          const std::int64_t begin = lower < 0 || lower >= i ? 0 : std::min(i - lower, n);
          const std::int64_t behind = upper < 0 || upper >= n - i - 1 ? n : i + upper + 1;
          const std::int64_t end = std::max(begin, behind);
          std::memset(moves.at(to, first), 0, std::size_t(begin) * size);
          if (begin < end)
            moves.copy(moves.at(from, first + begin), end - begin, moves.at(to, first + begin));
          std::memset(moves.at(to, first + end), 0, std::size_t(n - end) * size);
        }
      });
    ctx.set_output(0, std::move(y));
    return ok_status();
  }
  std::int64_t lower, upper;
};
std::vector<Output> band_grad(GradContext& c) {
  return {c.g.add("MatrixBandPart", {c.dy[0]},
                  {{"lower", c.int_attr("lower")}, {"upper", c.int_attr("upper")}})};
}

}  // namespace

TROUPE_OPS(matrix_band_part) {
  r.add({.name = "MatrixBandPart",
         .in = {"x"},
         .out = {"y"},
         .types = kPlainTypes,
         .attrs = {"lower: int", "upper: int"},
         .shape = band_shape,
         .grad = band_grad,
         .doc =
             "Each matrix in the last two dimensions of x with zeros (false) outside a band: "
             "`lower` diagonals below the main one and `upper` above it are kept, all of them if "
             "negative. (-1, 0) gives the lower triangle."})
      .cpu(make_kernel<MatrixBandPart>);
}
