#include "ops/cuda/reduce.hpp"

#include "ops/cuda/element_types.hpp"
#include "ops/cuda/launch.hpp"
#include "ops/device/arguments.hpp"

namespace troupe::cuda {
namespace {

// Neighbouring dimensions that are kept, or reduced, together are one.
struct Merged {
  struct Dim {
    std::int64_t extent = 1, stride = 1;
    bool reduced = false;
  };
  std::vector<Dim> dims;
  std::int64_t count = 1;  // elements of an output

  static Merged of(const Shape& x, const std::vector<bool>& reduced) {
    Merged m;
    std::int64_t stride = x.elements();
    for (int i = 0; i < x.rank(); ++i) {
      const std::int64_t extent = x.dim(i);
      const bool goes = reduced[std::size_t(i)];
      if (goes) m.count *= extent;
      if (extent == 1) continue;
      stride = extent == 0 ? 0 : stride / extent;
      if (!m.dims.empty() && m.dims.back().reduced == goes) {
        m.dims.back().extent *= extent;
        m.dims.back().stride = stride;
      } else {
        m.dims.push_back({extent, stride, goes});
      }
    }
    return m;
  }
  // [outer, n, inner] where that is all there is.
  bool is_plain() const {
    std::size_t at = 0;
    for (const bool goes : {false, true, false})
      if (at < dims.size() && dims[at].reduced == goes) ++at;
    return at == dims.size();
  }
  std::int64_t inner() const {
    return !dims.empty() && !dims.back().reduced && dims.size() > 1 ? dims.back().extent : 1;
  }
  device::Walk<1> walk(bool goes) const {
    device::Walk<1> walk{};
    for (const Dim& dim : dims) {
      if (dim.reduced != goes) continue;
      walk.dims[walk.rank] = dim.extent;
      walk.strides[0][walk.rank++] = dim.stride;
    }
    return walk;
  }
};

}  // namespace

Reducer::Reducer(const std::type_info& formula, DType dtype, bool wraps) : dtype_(dtype) {
  const std::vector<std::string> arguments = {name_of(formula),
                                              element_type(wraps ? without_sign(dtype) : dtype)};
  const char* const names[] = {"ReduceRows", "ReduceColumns", "ReduceWalk"};
  for (std::size_t i = 0; i < functions_.size(); ++i)
    functions_[i].type = device_type(names[i], arguments);
}

Expected<Tensor> Reducer::operator()(const KernelContext& ctx, const Tensor& x,
                                     const std::vector<bool>& reduced, const Shape& out) const {
  TROUPE_TRY(Tensor y, ctx.allocate(dtype_, out));
  const std::int64_t outputs = y.elements();
  if (outputs == 0) return y;
  const Merged merged = Merged::of(x.shape(), reduced);
  if (!merged.is_plain() && merged.count != 0) {
    device::ReduceWalkArgs args{x.raw(),      y.mutable_raw(),    outputs,
                                merged.count, merged.walk(false), merged.walk(true)};
    TROUPE_TRY(launch(ctx, functions_[2], grid_for(outputs), &args));
    return y;
  }
  // Of nothing: a row for each output.
  const std::int64_t inner = merged.count == 0 ? 1 : merged.inner();
  device::ReduceArgs args{x.raw(), y.mutable_raw(), outputs / inner, merged.count, inner};
  if (inner == 1)
    TROUPE_TRY(launch(ctx, functions_[0], block_for_each(outputs), &args));
  else
    TROUPE_TRY(launch(ctx, functions_[1], block_for_each(args.outer * strips_of(inner)), &args));
  return y;
}

}  // namespace troupe::cuda
