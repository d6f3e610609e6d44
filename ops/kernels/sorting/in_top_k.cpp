// InTopK: is the right class among the k most probable ones?
#include <fmt/core.h>

#include <cmath>

#include "ops/kernels/support/indices.hpp"

using namespace troupe;

namespace {

Status check_predictions(const PartialShape& predictions, const PartialShape& targets,
                         std::int64_t k) {
  if (k < 0) return invalid_argument(fmt::format("k is {}; it must not be negative", k));
  const bool fits = (!predictions.known_rank() || predictions.rank() == 2) &&
                    (!targets.known_rank() || targets.rank() == 1) &&
                    (!predictions.known_rank() || !targets.known_rank() || !predictions.known(0) ||
                     !targets.known(0) || predictions.dim(0) == targets.dim(0));
  if (fits) return ok_status();
  return invalid_argument(
      fmt::format("predictions must be [batch, classes] and targets [batch], "
                  "not {} and {}",
                  predictions.text(), targets.text()));
}
Status in_top_k_shape(InferenceContext& c) {
  TROUPE_TRY(check_predictions(c.shape(0), c.shape(1), c.int_attr("k")));
  PartialShape batch = c.shape(1).known_rank() ? c.shape(1) : PartialShape::unknown_of_rank(1);
  if (c.shape(0).known_rank()) {
    TROUPE_TRY(batch, PartialShape::merge(batch, PartialShape{c.shape(0).dim(0)}));
  }
  c.set(0, std::move(batch));
  return ok_status();
}

template <class T>
struct InTopK final : Kernel {
  explicit InTopK(const KernelSpec& s) : k(s.int_attr("k")) {}
  Status compute(KernelContext& ctx) override {
    const Tensor &predictions = ctx.input(0), &targets = ctx.input(1);
    TROUPE_TRY(check_predictions(predictions.shape(), targets.shape(), k));
    TROUPE_TRY(check_indices(targets, predictions.dim(1)));
    TROUPE_TRY(Tensor y, ctx.allocate(DType::bool_, targets.shape()));
    bool* out = y.mutable_data<bool>();
    const std::int64_t classes = predictions.dim(1);
    const Chunks chunks = row_chunks(targets.elements(), classes);
    if (chunks.count != 0)
      ctx.parallel(chunks.count, [&](std::int64_t c) {
        with_indices(targets, [&](const auto* at) {
          for (std::int64_t i = chunks[c].begin; i < chunks[c].end; ++i)
            out[i] = among(predictions.data<T>() + i * classes, classes, at[i]);
        });
      });
    ctx.set_output(0, std::move(y));
    return ok_status();
  }
  bool among(const T* row, std::int64_t n, std::int64_t target) const {
    const auto mine = Compute<T>(row[target]);
    std::int64_t above = 0;
    for (std::int64_t i = 0; i < n; ++i) {
      const auto p = Compute<T>(row[i]);
      if (!std::isfinite(p)) return false;
      above += p > mine ? 1 : 0;
    }
    return above < k;
  }
  std::int64_t k;
};

}  // namespace

TROUPE_OPS(in_top_k) {
  r.add({.name = "InTopK",
         .in = {"predictions", "targets: Tindex"},
         .out = {"y: bool"},
         .types = kFloats,
         .attrs = {"k: int", "Tindex: type {i32 i64} = i64"},
         .shape = in_top_k_shape,
         .no_gradient = "a truth value",
         .doc =
             "y[i] is true if fewer than k elements of predictions[i] exceed predictions[i, "
             "targets[i]], so ties at the boundary are included. False for a row with an infinity "
             "or a NaN, as in TensorFlow; a target out of range is an error."})
      .cpu(typed_kernel<InTopK, Floats>);
}
