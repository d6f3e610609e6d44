// SearchSorted: where values would be inserted into sorted sequences.
#include <fmt/core.h>

#include <algorithm>

#include "ops/kernels/support/args.hpp"
#include "ops/kernels/support/elementwise.hpp"
#include "ops/kernels/support/indices.hpp"
#include "ops/kernels/support/order.hpp"

using namespace troupe;

namespace {

Status check_sequences(const PartialShape& sequence, const PartialShape& values) {
  if (sequence.known_rank() && sequence.rank() == 0)
    return invalid_argument("sequence must have rank 1 or more, not []");
  if (!sequence.known_rank() || !values.known_rank() || sequence.rank() == 1) return ok_status();
  bool fits = sequence.rank() == values.rank();
  for (int i = 0; fits && i + 1 < sequence.rank(); ++i)
    fits = !sequence.known(i) || !values.known(i) || sequence.dim(i) == values.dim(i);
  if (fits) return ok_status();
  return invalid_argument(
      fmt::format("sequence {} and values {} must be alike but for the last "
                  "dimension, or sequence a vector",
                  sequence.text(), values.text()));
}
Status search_shape(InferenceContext& c) {
  TROUPE_TRY(check_sequences(c.shape(0), c.shape(1)));
  c.set(0, c.shape(1));
  return ok_status();
}

struct SearchSorted final : Kernel {
  explicit SearchSorted(const KernelSpec& s) : right(s.bool_attr("right")) {}
  Status compute(KernelContext& ctx) override {
    const Tensor &sequence = ctx.input(0), &values = ctx.input(1);
    TROUPE_TRY(check_sequences(sequence.shape(), values.shape()));
    TROUPE_TRY(Tensor y, ctx.allocate(DType::i64, values.shape()));
    std::int64_t* out = y.mutable_data<std::int64_t>();
    const std::int64_t n = sequence.dim(sequence.rank() - 1);
    const bool one = sequence.rank() == 1;
    const std::int64_t rows = one ? 1 : values.shape().elements(0, values.rank() - 1);
    const std::int64_t m = rows == 0 ? 0 : values.elements() / rows;
    if (m == 0) return ctx.set_output(0, std::move(y)), ok_status();
    std::vector<Ranked> keys(static_cast<std::size_t>(n));
    const auto below = [](const Ranked& a, const Ranked& b) { return a.key < b.key; };
    for (std::int64_t row = 0; row < rows; ++row) {
      rank_elements(sequence, row * n, 1, false, keys);
      for (std::int64_t i = 1; i < n; ++i)
        if (below(keys[std::size_t(i)], keys[std::size_t(i - 1)]))
          return invalid_argument(fmt::format(
              "sequence[{}] is below the element before it: it must be sorted", row * n + i));
      for_chunks(ctx, m, [&](Range r) {
        std::vector<Ranked> wanted(static_cast<std::size_t>(r.size()));
        rank_elements(values, row * m + r.begin, 1, false, wanted);
        for (std::int64_t i = r.begin; i < r.end; ++i) {
          const Ranked& value = wanted[std::size_t(i - r.begin)];
          const auto place = right ? std::upper_bound(keys.begin(), keys.end(), value, below)
                                   : std::lower_bound(keys.begin(), keys.end(), value, below);
          out[row * m + i] = place - keys.begin();
        }
      });
    }
    ctx.set_output(0, std::move(y));
    return ok_status();
  }
  bool right;
};

}  // namespace

TROUPE_OPS(search_sorted) {
  r.add({.name = "SearchSorted",
         .in = {"sequence", "values"},
         .out = {"indices: i64"},
         .types = kNumbers,
         .attrs = {"right: bool = false"},
         .shape = search_shape,
         .no_gradient = "an index",
         .doc =
             "For each value, the number of elements in the ascending last dimension of sequence "
             "that are below it, or with `right` not above it. A vector is used for all values; "
             "otherwise the other dimensions are equal. A NaN is above all numbers. A sequence "
             "that is not sorted is an error."})
      .cpu(make_kernel<SearchSorted>);
}
