// Sums, means, extremes and products of rows by segment: of ids in ascending order, which say
// themselves how many segments there are, and of ids in any order.
#include <fmt/core.h>

#include "ops/cuda/device_kernel.hpp"
#include "ops/cuda/rows.hpp"
#include "ops/kernels/sparse/segment_shape.hpp"
#include "ops/kernels/support/grad.hpp"

using namespace troupe;

namespace {

enum class Fold : std::uint8_t { sum, mean, max, min, prod };

Status segments_shape(InferenceContext& c) {
  TROUPE_TRY(c.want_rank(1, 1));
  TROUPE_TRY(PartialShape shape, folded_shape(c.shape(0), c.shape(1), PartialShape::kUnknown));
  c.set(0, std::move(shape));
  return ok_status();
}

// How many segments ids in ascending order name. invalid_argument names the first that is not.
Expected<std::int64_t> ascending_segments(const Tensor& ids) {
  if (ids.rank() != 1)
    return invalid_argument("segment_ids must have rank 1, not " + ids.shape().text());
  Status status;
  std::int64_t last = -1;
  with_indices(ids, [&](const auto* at) {
    for (std::int64_t i = 0; i < ids.elements() && status.ok(); ++i) {
      if (at[i] < 0)
        status = invalid_argument(fmt::format("segment_ids[{}] = {} is negative", i, at[i]));
      else if (at[i] < last)
        status = invalid_argument(fmt::format(
            "segment_ids[{}] = {} is below {} before it: they must be sorted", i, at[i], last));
      else if (std::int64_t(at[i]) == INT64_MAX)
        status = invalid_argument(fmt::format("segment_ids[{}] = {} is too large", i, at[i]));
      last = at[i];
    }
  });
  TROUPE_TRY(std::move(status));
  return last + 1;
}

template <class T>
constexpr Compute<T> largest_finite() {
  if constexpr (std::is_same_v<T, half>)
    return 65504.0f;
  else if constexpr (std::is_same_v<T, bfloat16>)
    return 0x1.FEp127f;
  else
    return std::numeric_limits<T>::max();
}

// What a segment without rows has, as in TensorFlow.
template <class T>
Compute<T> of_nothing(Fold fold, bool sorted) {
  using C = Compute<T>;
  if (fold == Fold::prod) return C(1);
  if (sorted || fold == Fold::sum || fold == Fold::mean) return C(0);
  if (fold == Fold::min) return largest_finite<T>();
  if constexpr (std::is_integral_v<T>) return std::numeric_limits<T>::lowest();
  return C(-largest_finite<T>());
}

// How many segments there are, and that the ids are among them.
Expected<std::int64_t> checked_segments(const KernelContext& ctx, bool sorted) {
  if (sorted) return ascending_segments(ctx.input(1));
  TROUPE_TRY(const std::int64_t segments, segment_count(ctx));
  TROUPE_TRY(check_indices(ctx.input(1), segments));
  return segments;
}

template <class T>
class SegmentFold final : public Kernel {
 public:
  using C = Compute<T>;
  SegmentFold(Fold fold, bool sorted) : fold_(fold), sorted_(sorted) {}

  Status compute(KernelContext& ctx) override {
    const Tensor &data = ctx.input(0), &ids = ctx.input(1);
    TROUPE_TRY(const std::int64_t segments, checked_segments(ctx, sorted_));
    TROUPE_TRY(PartialShape dims, folded_shape(data.shape(), ids.shape(), segments));
    TROUPE_TRY(Shape shape, Shape::make(dims.dims()));
    TROUPE_TRY(Tensor y, ctx.allocate(dtype_of<T>, shape));
    T* out = y.mutable_data<T>();
    for_chunks(ctx, y.elements(), [&](Range r) {
      std::fill_n(out + r.begin, r.size(), T(of_nothing<T>(fold_, sorted_)));
    });
    const std::int64_t row = shape.elements(1, shape.rank());
    if (row != 0 && ids.elements() != 0) fold_rows(ctx, data.data<T>(), ids, row, out);
    ctx.set_output(0, std::move(y));
    return ok_status();
  }

 private:
  // Lanes share the columns, so the rows of a segment meet in their order.
  void fold_rows(const KernelContext& ctx, const T* from, const Tensor& ids, std::int64_t row,
                 T* out) const {
    constexpr std::int64_t kColumns = 256;
    const std::vector<std::int64_t> order = by_place(ids), at = places(ids);
    const Chunks columns = Chunks::of_step(row, kColumns);
    ctx.parallel(columns.count, [&](std::int64_t c) {
      const Range r = columns[c];
      C acc[kColumns];
      for (std::size_t i = 0; i < order.size();) {
        const std::int64_t segment = at[order[i]];
        const std::size_t begin = i;
        begin_row(acc, from + order[i] * row + r.begin, r.size());
        for (++i; i < order.size() && at[order[i]] == segment; ++i)
          add_row(acc, from + order[i] * row + r.begin, r.size());
        T* to = out + segment * row + r.begin;
        const auto count = C(i - begin);
        for (std::int64_t k = 0; k < r.size(); ++k)
          to[k] = T(fold_ == Fold::mean ? C(acc[k] / count) : acc[k]);
      }
    });
  }
  void begin_row(C* acc, const T* x, std::int64_t n) const {
    for (std::int64_t k = 0; k < n; ++k) acc[k] = C(x[k]);
    if (fold_ == Fold::sum || fold_ == Fold::mean)  // -0 alone is 0, as after a sum
      for (std::int64_t k = 0; k < n; ++k) acc[k] = C(acc[k] + C(0));
  }
  void add_row(C* acc, const T* x, std::int64_t n) const {
    switch (fold_) {
      case Fold::sum:
      case Fold::mean:
        for (std::int64_t k = 0; k < n; ++k) acc[k] = plus_wrapped(acc[k], C(x[k]));
        break;
      case Fold::prod:
        for (std::int64_t k = 0; k < n; ++k) acc[k] = times_wrapped(acc[k], C(x[k]));
        break;
      case Fold::max:
        for (std::int64_t k = 0; k < n; ++k) {
          const C v = C(x[k]);
          acc[k] = v > acc[k] || v != v ? v : acc[k];
        }
        break;
      case Fold::min:
        for (std::int64_t k = 0; k < n; ++k) {
          const C v = C(x[k]);
          acc[k] = v < acc[k] || v != v ? v : acc[k];
        }
        break;
    }
  }
  static C plus_wrapped(C a, C b) {
    if constexpr (std::is_integral_v<C>)
      return C(std::uint64_t(a) + std::uint64_t(b));
    else
      return a + b;
  }
  static C times_wrapped(C a, C b) {
    if constexpr (std::is_integral_v<C>)
      return C(std::uint64_t(a) * std::uint64_t(b));
    else
      return a * b;
  }

  Fold fold_;
  bool sorted_;
};

using SegmentTypes = Types<float, double, half, bfloat16, std::int32_t, std::int64_t>;
template <Fold F, bool Sorted>
Expected<std::unique_ptr<Kernel>> folding(const KernelSpec& spec) {
  return dispatch<Expected<std::unique_ptr<Kernel>>>(SegmentTypes{}, spec.type(), [](auto tag) {
    return std::unique_ptr<Kernel>(new SegmentFold<typename decltype(tag)::type>(F, Sorted));
  });
}

class SegmentFoldOnGpu final : public cuda::DeviceKernel {
 public:
  SegmentFoldOnGpu(const KernelSpec& spec, Fold fold, bool sorted)
      : dtype_(spec.type()), sorted_(sorted), fold_(function(fold), dtype_, wraps(fold)) {
    const Status known = dispatch<Status>(SegmentTypes{}, dtype_, [&](auto tag) -> Status {
      const auto value = of_nothing<typename decltype(tag)::type>(fold, sorted);
      nothing_ = {double(value), std::int64_t(is_integer(dtype_) ? value : 0)};
      return ok_status();
    });
    TROUPE_CHECK(known.ok(), "a type of the definition");
  }
  std::span<cuda::GpuFunction> functions() override { return fold_.functions(); }
  Status compute(KernelContext& ctx) override {
    const Tensor &data = ctx.input(0), &ids = ctx.input(1);
    TROUPE_TRY(const std::int64_t segments, checked_segments(ctx, sorted_));
    TROUPE_TRY(PartialShape dims, folded_shape(data.shape(), ids.shape(), segments));
    TROUPE_TRY(Shape shape, Shape::make(dims.dims()));
    TROUPE_TRY(Tensor y, ctx.allocate(dtype_, shape));
    TROUPE_TRY(fold_.join(ctx, data, by_place(ids), places(ids),
                          {1, segments, shape.elements(1, shape.rank())}, nothing_, y));
    ctx.set_output(0, std::move(y));
    return ok_status();
  }

 private:
  static bool wraps(Fold fold) { return fold == Fold::sum || fold == Fold::prod; }
  static std::string function(Fold fold) {
    const char* const formulas[] = {"SumOf", "MeanOf", "MaxOf", "MinOf", "ProdOf"};
    return std::string("JoinRows<troupe::formula::") + formulas[std::size_t(fold)] + ">";
  }

  DType dtype_;
  bool sorted_;
  cuda::RowFolder fold_;
  cuda::Nothing nothing_;
};
template <Fold F, bool Sorted>
Expected<std::unique_ptr<Kernel>> folding_on_gpu(const KernelSpec& spec) {
  return std::unique_ptr<Kernel>(new SegmentFoldOnGpu(spec, F, Sorted));
}

// --- gradients ---

Output of_rows(GradContext& c, Output by_segment) {
  return c.g.add("Gather", {by_segment, c.x[1]});
}
Output sums_of(GradContext& c, Output rows) {
  if (c.x.size() == 2) return c.g.add("SegmentSum", {rows, c.x[1]});
  return c.g.add("UnsortedSegmentSum", {rows, c.x[1], c.x[2]});
}
// A segment without rows is divided by 1: 0 / 0 would be a NaN in the gradient of the gradient.
Output shared_by(Output dy, Output counts) {
  const Output most = dy.graph().add("Maximum", {counts, scalar_like(counts, 1)});
  return of_dtype(divide(wide(dy), most), dy.dtype());
}
std::vector<Output> gradient_for_data(const GradContext& c, Output dx) {
  std::vector<Output> all(c.x.size());
  all[0] = dx;
  return all;
}

std::vector<Output> fold_sum_grad(GradContext& c) {
  return gradient_for_data(c, of_rows(c, c.dy[0]));
}
std::vector<Output> fold_mean_grad(GradContext& c) {
  const Output counts = sums_of(c, wide(c.g.add("OnesLike", {c.x[0]})));
  return gradient_for_data(c, of_rows(c, shared_by(c.dy[0], counts)));
}
// Equal extremes of a segment share the gradient equally.
std::vector<Output> fold_extremum_grad(GradContext& c) {
  const Output hit = c.g.add("Equal", {c.x[0], of_rows(c, c.y[0])});
  const Output hits = sums_of(c, of_dtype(hit, wide(c.x[0].dtype())));
  const Output share = of_rows(c, shared_by(c.dy[0], hits));
  return gradient_for_data(c, where(hit, share, c.g.add("ZerosLike", {share})));
}

// The product of what stands before each row in its segment (`by` = 1) or behind it (-1).
Output products_beside(Output rows, Output ids, std::int64_t by) {
  GraphBuilder& g = rows.graph();
  // From 1 on, as Shift fills with 0, which then is no id.
  const Output name = plus(ids, scalar_like(ids, 1));
  const Output same = g.add(
      "ExpandDims", {g.add("Equal", {name, g.add("Shift", {name}, {{"by", by}})})}, {{"axis", 1}});
  const Output zeros = g.add("ZerosLike", {rows});
  const Output factors = where(same, g.add("Shift", {rows}, {{"by", by}}), zeros);
  const Output begins = where(same, zeros, g.add("OnesLike", {rows}));
  return g.add("LinearRecurrence", {factors, begins}, {{"reverse", by < 0}});
}
// dx = dy times the product of all other rows of the segment, from what stands before and behind:
// right with zeros, where y / x is not, and so are the gradients of this gradient.
std::vector<Output> fold_prod_grad(GradContext& c) {
  GraphBuilder& g = c.g;
  const Output x = wide(c.x[0]), count = g.add("Size", {c.x[1]});
  const Output width =
      divide(g.add("Size", {x}), g.add("Maximum", {count, scalar_const(g, DType::i64, 1)}));
  const auto gathered = [&g](Output from, Output at) { return g.add("Gather", {from, at}); };
  Output ids = g.add("Reshape", {c.x[1], i64_const(g, {-1})});
  Output rows = g.add("Reshape", {x, g.add("Pack", {count, width})});
  Output back;
  if (c.x.size() == 3) {
    const Output order = g.add("ArgSort", {ids});
    back = g.add("ArgSort", {order});
    ids = gathered(ids, order);
    rows = gathered(rows, order);
  }
  Output others = multiply(products_beside(rows, ids, 1), products_beside(rows, ids, -1));
  if (!back.empty()) others = gathered(others, back);
  others = g.add("Reshape", {others, g.add("Shape", {x})});
  const Output dx = multiply(wide(of_rows(c, c.dy[0])), others);
  return gradient_for_data(c, of_dtype(dx, c.x[0].dtype()));
}

OpDef segment_op(std::string name, std::string types, GradFn grad, std::string doc) {
  return {.name = std::move(name),
          .in = {"data", "segment_ids: Tindex"},
          .out = {"y"},
          .types = std::move(types),
          .attrs = {"Tindex: type {i32 i64} = i64"},
          .shape = segments_shape,
          .grad = grad,
          .host = {"segment_ids"},
          .doc = "y[s] = " + std::move(doc) +
                 " The ids, one for each slice data[i, ...], must be in ascending order; the last "
                 "one determines the number of segments."};
}
OpDef unsorted_segment_op(std::string name, std::string types, GradFn grad, std::string doc) {
  return {.name = std::move(name),
          .in = {"data", "segment_ids: Tindex", "num_segments: i64"},
          .out = {"y"},
          .types = std::move(types),
          .attrs = {"Tindex: type {i32 i64} = i64"},
          .shape = unsorted_segments_shape,
          .grad = grad,
          .host = {"segment_ids", "num_segments"},
          .doc = "y[s] = " + std::move(doc) +
                 " segment_ids has the first dimensions of data; an id outside [0, num_segments) "
                 "is an error."};
}

constexpr const char* kSegmentTypes = "f32 f64 f16 bf16 i32 i64";

}  // namespace

TROUPE_OPS(segments) {
  // The kernels of sorted ids are not for devices that want to know shapes before they have run.
  r.add(segment_op("SegmentSum", kSegmentTypes, fold_sum_grad,
                   "the sum of the slices of data whose id is s; 0 if there are none."))
      .on("CPU", folding<Fold::sum, true>)
      .cuda(folding_on_gpu<Fold::sum, true>);
  r.add(segment_op("SegmentMean", kFloats, fold_mean_grad,
                   "the mean of the slices of data whose id is s; 0 if there are none."))
      .on("CPU", folding<Fold::mean, true>)
      .cuda(folding_on_gpu<Fold::mean, true>);
  r.add(segment_op("SegmentMax", kSegmentTypes, fold_extremum_grad,
                   "the maximum of the slices of data whose id is s, NaN if one of them is; 0 if "
                   "there are none. Equal maxima share the gradient equally."))
      .on("CPU", folding<Fold::max, true>)
      .cuda(folding_on_gpu<Fold::max, true>);
  r.add(segment_op("SegmentMin", kSegmentTypes, fold_extremum_grad,
                   "the minimum of the slices of data whose id is s, NaN if one of them is; 0 if "
                   "there are none. Equal minima share the gradient equally."))
      .on("CPU", folding<Fold::min, true>)
      .cuda(folding_on_gpu<Fold::min, true>);
  r.add(segment_op("SegmentProd", kSegmentTypes, fold_prod_grad,
                   "the product of the slices of data whose id is s; 1 if there are none. The "
                   "gradient is exact even with zeros."))
      .on("CPU", folding<Fold::prod, true>)
      .cuda(folding_on_gpu<Fold::prod, true>);
  r.add(unsorted_segment_op("UnsortedSegmentMean", kFloats, fold_mean_grad,
                            "the mean of the slices of data whose id is s; 0 if there are none."))
      .cpu(folding<Fold::mean, false>)
      .cuda(folding_on_gpu<Fold::mean, false>);
  r.add(unsorted_segment_op("UnsortedSegmentMax", kSegmentTypes, fold_extremum_grad,
                            "the maximum of the slices of data whose id is s, NaN if one of them "
                            "is; the lowest finite value if there are none. Equal maxima share the "
                            "gradient equally."))
      .cpu(folding<Fold::max, false>)
      .cuda(folding_on_gpu<Fold::max, false>);
  r.add(unsorted_segment_op("UnsortedSegmentMin", kSegmentTypes, fold_extremum_grad,
                            "the minimum of the slices of data whose id is s, NaN if one of them "
                            "is; the largest finite value if there are none. Equal minima share "
                            "the gradient equally."))
      .cpu(folding<Fold::min, false>)
      .cuda(folding_on_gpu<Fold::min, false>);
  r.add(unsorted_segment_op("UnsortedSegmentProd", kSegmentTypes, fold_prod_grad,
                            "the product of the slices of data whose id is s; 1 if there are none. "
                            "The gradient is exact even with zeros."))
      .cpu(folding<Fold::prod, false>)
      .cuda(folding_on_gpu<Fold::prod, false>);
}
