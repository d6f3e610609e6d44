#include "ops/cuda/reduce.hpp"

#include <algorithm>
#include <iterator>
#include <string>
#include <utility>

#include "ops/cuda/element_types.hpp"
#include "ops/cuda/launch.hpp"
#include "ops/device/arguments.hpp"

namespace troupe::cuda {
namespace {

// Dimensions that are reduced, and those around them.
struct Step {
  std::int64_t outer = 1, n = 1, inner = 1;
};

// Neighbouring dimensions that are kept, or reduced, together are one.
struct Merged {
  struct Dim {
    std::int64_t extent = 1;
    bool reduced = false;
  };
  std::vector<Dim> dims;
  std::int64_t count = 1;  // elements of an output

  static Merged of(const Shape& x, const std::vector<bool>& reduced) {
    Merged m;
    for (int i = 0; i < x.rank(); ++i) {
      const std::int64_t extent = x.dim(i);
      const bool goes = reduced[std::size_t(i)];
      if (goes) m.count *= extent;
      if (extent == 1) continue;
      if (!m.dims.empty() && m.dims.back().reduced == goes)
        m.dims.back().extent *= extent;
      else
        m.dims.push_back({extent, goes});
    }
    return m;
  }
  bool any_reduced() const {
    return std::any_of(dims.begin(), dims.end(), [](const Dim& d) { return d.reduced; });
  }
  // The last that are reduced, which are then gone. None: of each element alone.
  Step take_last() {
    Step step;
    const auto last =
        std::find_if(dims.rbegin(), dims.rend(), [](const Dim& d) { return d.reduced; });
    for (auto d = last; d != dims.rend(); ++d) (d == last ? step.n : step.outer) *= d->extent;
    for (auto d = dims.rbegin(); d != last; ++d)
      (last == dims.rend() ? step.outer : step.inner) *= d->extent;
    if (last != dims.rend()) dims.erase(std::next(last).base());
    return step;
  }
};

// What goes through the numbers of an output: a block, a warp's lane for each column, or a thread.
enum By : std::size_t { rows, columns, few };
constexpr const char* kNames[] = {"ReduceRows", "ReduceColumns", "ReduceFew"};

By by(const Step& step) { return step.n <= kFew ? few : step.inner == 1 ? rows : columns; }

std::int64_t blocks_of(const Step& step) {
  return step.inner == 1 ? step.outer : step.outer * strips_of(step.inner);
}

}  // namespace

Reducer::Reducer(const std::type_info& formula, DType dtype, bool wraps) : dtype_(dtype) {
  std::vector<std::string> arguments = {name_of(formula),
                                        element_type(wraps ? without_sign(dtype) : dtype)};
  constexpr std::size_t n = std::size(kNames);
  static_assert(2 * n == std::tuple_size_v<decltype(functions_)>);
  for (std::size_t i = 0; i < functions_.size(); ++i) {
    if (i == n && sum_type(dtype) != dtype) arguments.push_back(element_type(sum_type(dtype)));
    functions_[i].type = device_type(kNames[i % n], arguments);
  }
}

Expected<Tensor> Reducer::operator()(const KernelContext& ctx, const Tensor& x,
                                     const std::vector<bool>& reduced, const Shape& out) const {
  TROUPE_TRY(Tensor y, ctx.allocate(dtype_, out));
  if (y.elements() == 0) return y;
  Merged merged = Merged::of(x.shape(), reduced);
  // Of nothing: a row for each output.
  Step step = merged.count == 0 ? Step{y.elements(), 0, 1} : merged.take_last();
  Tensor from = x;
  bool begun = false, joins = false;  // whether `from` is not finished, and has parts
  for (;;) {
    const By how = by(step);
    const device::Parts parts =
        joins ? device::Parts{}
              : parts_of(step.n, blocks_of(step), how == rows ? kLeastOfRow : kLeastOfColumns);
    const bool last = parts.count == 1 && (merged.count == 0 || !merged.any_reduced());
    Tensor sums;
    if (!last) {
      TROUPE_TRY(sums,
                 ctx.allocate(sum_type(dtype_), Shape{step.outer * parts.count * step.inner}));
    }
    device::ReduceArgs args{from.raw(), nullptr, step.outer,   step.n,
                            step.inner, parts,   merged.count, !last};
    args.y = last ? y.mutable_raw() : sums.mutable_raw();
    const GpuFunction& function = functions_[(begun ? std::size(kNames) : 0) + how];
    const Grid grid = how == few ? grid_for(step.outer * step.inner)
                                 : block_for_each(blocks_of(step) * parts.count);
    TROUPE_TRY(launch(ctx, function, grid, &args));
    if (last) return y;
    from = std::move(sums);
    begun = true;
    joins = parts.count > 1;
    if (joins)
      step.n = parts.count;
    else
      step = merged.take_last();
  }
}

DType sum_type(DType dtype) {
  return dtype == DType::f16 || dtype == DType::bf16 ? DType::f32 : dtype;
}

GpuFunction sum_of_columns(DType dtype) {
  std::vector<std::string> types{"troupe::formula::SumOf", element_type(dtype)};
  if (sum_type(dtype) != dtype) types.push_back(element_type(sum_type(dtype)));
  return {device_type("ReduceColumns", types)};
}

Status sum_columns(const KernelContext& ctx, const GpuFunction& function, const void* sums,
                   void* to, std::int64_t rows, std::int64_t columns) {
  device::ReduceArgs args{sums, to, 1, rows, columns};
  return launch(ctx, function, block_for_each(strips_of(columns)), &args);
}

}  // namespace troupe::cuda
