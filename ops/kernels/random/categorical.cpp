// Categorical: classes drawn with the probabilities that logits stand for.
#include <algorithm>

#include "ops/kernels/random/substream.hpp"
#include "ops/kernels/support/typed.hpp"

using namespace troupe;

namespace {

Status categorical_shape(InferenceContext& c) {
  const std::int64_t n = c.int_attr("n");
  if (n < 0) return invalid_argument(fmt::format("n is {}; it must not be negative", n));
  TROUPE_TRY(c.want_rank(0, 2));
  const std::int64_t rows = c.shape(0).known_rank() ? std::int64_t(c.shape(0)[0]) : -1;
  TROUPE_TRY(PartialShape y, PartialShape::make(std::vector<std::int64_t>{rows, n}));
  c.set(0, std::move(y));
  return ok_status();
}

// The sums of the probabilities, not scaled, of the classes up to each one.
template <class T>
Status add_up(const T* logits, std::int64_t row, std::vector<double>& sums) {
  double top = -std::numeric_limits<double>::infinity(), sum = 0;
  for (std::size_t j = 0; j < sums.size(); ++j) {
    const double x = double(Compute<T>(logits[j]));
    if (std::isnan(x) || x == std::numeric_limits<double>::infinity())
      return invalid_argument(fmt::format("logits[{},{}] is {}", row, j, x));
    top = std::max(top, x);
  }
  if (std::isinf(top))
    return invalid_argument(fmt::format("row {} of logits has no class with a probability", row));
  for (std::size_t j = 0; j < sums.size(); ++j)
    sums[j] = sum += std::exp(double(Compute<T>(logits[j])) - top);
  return ok_status();
}

template <class T>
struct Categorical final : Kernel {
  explicit Categorical(const KernelSpec& s) : n(s.int_attr("n")) {}
  Status compute(KernelContext& ctx) override {
    const Tensor& logits = ctx.input(0);
    if (logits.rank() != 2)
      return invalid_argument("logits must have rank 2, not " + logits.shape().text());
    TROUPE_TRY(const Shape shape, Shape::make(std::vector<std::int64_t>{logits.dim(0), n}));
    TROUPE_TRY(Tensor y, ctx.allocate(DType::i64, shape));
    const std::int64_t classes = logits.dim(1), per_row = std::max<std::int64_t>(n, 1);
    const T* from = logits.data<T>();
    std::int64_t* to = y.mutable_data<std::int64_t>();
    const RandomState random = ctx.random();
    const Chunks chunks = Chunks::of_step(
        y.elements(), std::max<std::int64_t>(1, kElementwiseChunk / (1 + classes / per_row)));
    TROUPE_TRY(parallel_chunks(ctx, chunks.count, [&](std::int64_t c) -> Status {
      std::vector<double> sums(static_cast<std::size_t>(classes));
      std::int64_t row = -1;
      for (std::int64_t i = chunks[c].begin; i < chunks[c].end; ++i) {
        if (i / n != row) {
          row = i / n;
          TROUPE_TRY(add_up(from + row * classes, row, sums));
        }
        // The first sum above the number; where rounding left none, the first of the largest ones.
        // A class without probability has the sum of the class before it, and is not the first.
        auto at =
            std::upper_bound(sums.begin(), sums.end(), unit_of_element(random, i) * sums.back());
        if (at == sums.end()) at = std::lower_bound(sums.begin(), sums.end(), sums.back());
        to[i] = at - sums.begin();
      }
      return ok_status();
    }));
    ctx.set_output(0, std::move(y));
    return ok_status();
  }
  const std::int64_t n;
};

}  // namespace

TROUPE_OPS(categorical) {
  OpDef def = drawn_by_input("Categorical", "logits", "classes: i64",
                             "For each row of logits [batch, classes], n classes [batch, n], drawn "
                             "with the probabilities softmax(logits). A class of probability 0 "
                             "(logit -inf) is never drawn. A logit of NaN or inf is an error, as "
                             "is a row without a class to draw.");
  def.attrs = {"n: int"};
  def.shape = categorical_shape;
  r.add(std::move(def)).cpu(typed_kernel<Categorical, Floats>);
}
