#include "troupe/ops/kernels/views.hpp"

#include <fmt/core.h>

#include "troupe/ops/kernels/args.hpp"
#include "troupe/ops/kernels/types.hpp"

namespace troupe {

std::int64_t offset_of(const Strides& strides, const std::vector<std::int64_t>& index) {
  std::int64_t at = 0;
  for (std::size_t i = 0; i < index.size(); ++i) at += strides[i] * index[i];
  return at;
}

Status wrong_length(std::string_view what, std::size_t n, int rank) {
  return invalid_argument(fmt::format("{} has {} entries for rank {}", what, n, rank));
}

Status view_copy(KernelContext& ctx, const Shape& shape, const Strides& strides,
                 std::int64_t offset) {
  const Tensor& x = ctx.input(0);
  TROUPE_TRY(Tensor y, ctx.allocate(x.dtype(), shape));
  strided_copy(ctx, x.dtype(), shape, Moves(x.dtype()).at(x.raw(), offset), strides,
               y.mutable_raw(), strides_of(shape));
  ctx.set_output(0, std::move(y));
  return ok_status();
}

Status place(KernelContext& ctx, const Shape& shape, std::int64_t offset, double value) {
  const Tensor& x = ctx.input(0);
  TROUPE_TRY(Tensor y, ctx.allocate(x.dtype(), shape));
  TROUPE_TRY(dispatch<Status>(NumbersAndBool{}, x.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    const T background = T(Compute<T>(value));
    fill_tensor(ctx, &background, y);
    return ok_status();
  }));
  strided_copy(ctx, x.dtype(), x.shape(), x.raw(), strides_of(x.shape()),
               Moves(x.dtype()).at(y.mutable_raw(), offset), strides_of(shape));
  ctx.set_output(0, std::move(y));
  return ok_status();
}

}  // namespace troupe
