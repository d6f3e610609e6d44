#include "ops/kernels/support/views.hpp"

#include <fmt/core.h>

#include "ops/cuda/strided.hpp"
#include "ops/kernels/support/args.hpp"
#include "ops/kernels/support/types.hpp"

namespace troupe {

std::int64_t offset_of(const Strides& strides, const std::vector<std::int64_t>& index) {
  std::int64_t at = 0;
  for (std::size_t i = 0; i < index.size(); ++i) at += strides[i] * index[i];
  return at;
}

Status wrong_length(std::string_view what, std::size_t n, int rank) {
  return invalid_argument(fmt::format("{} has {} entries for rank {}", what, n, rank));
}

Status copy_strided(const KernelContext& ctx, DType dtype, const Shape& dims, const void* from,
                    const Strides& a, void* to, const Strides& b) {
  if (cuda::on_gpu(ctx)) return cuda::copy_strided(ctx, dtype, dims, from, a.data(), to, b.data());
  strided_copy(ctx, dtype, dims, from, a, to, b);
  return ok_status();
}

Status fill_with(const KernelContext& ctx, double value, Tensor& y) {
  if (cuda::on_gpu(ctx)) return cuda::fill_with(ctx, value, y);
  return dispatch<Status>(PlainTypes{}, y.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    const T background = T(Compute<T>(value));
    fill_tensor(ctx, &background, y);
    return ok_status();
  });
}

Status view_copy(KernelContext& ctx, const Shape& shape, const Strides& strides,
                 std::int64_t offset) {
  const Tensor& x = ctx.input(0);
  TROUPE_TRY(Tensor y, ctx.allocate(x.dtype(), shape));
  // Without elements, an offset in bytes may be beyond all numbers.
  if (y.elements() != 0)
    TROUPE_TRY(copy_strided(ctx, x.dtype(), shape, Moves(x.dtype()).at(x.raw(), offset), strides,
                            y.mutable_raw(), strides_of(shape)));
  ctx.set_output(0, std::move(y));
  return ok_status();
}

Status place(KernelContext& ctx, const Shape& shape, std::int64_t offset, double value) {
  const Tensor& x = ctx.input(0);
  TROUPE_TRY(Tensor y, ctx.allocate(x.dtype(), shape));
  TROUPE_TRY(fill_with(ctx, value, y));
  if (x.elements() != 0)
    TROUPE_TRY(copy_strided(ctx, x.dtype(), x.shape(), x.raw(), strides_of(x.shape()),
                            Moves(x.dtype()).at(y.mutable_raw(), offset), strides_of(shape)));
  ctx.set_output(0, std::move(y));
  return ok_status();
}

Expected<Tensor> own_first_input(const KernelContext& ctx) {
  const Tensor& x = ctx.input(0);
  TROUPE_TRY(Tensor y, ctx.reuse_or_allocate(0, x.dtype(), x.shape()));
  if (y.raw() == x.raw() || x.bytes() == 0) return y;
  if (cuda::on_gpu(ctx)) {
    const Strides strides = strides_of(x.shape());
    TROUPE_TRY(copy_strided(ctx, x.dtype(), x.shape(), x.raw(), strides, y.mutable_raw(), strides));
  } else {
    std::memcpy(y.mutable_raw(), x.raw(), x.bytes());
  }
  return y;
}

Status add_to_view(KernelContext& ctx, const Strides& strides, std::int64_t offset) {
  const Tensor& part = ctx.input(1);
  TROUPE_TRY(Tensor y, own_first_input(ctx));
  if (cuda::on_gpu(ctx)) {
    TROUPE_TRY(cuda::add_strided(ctx, part.dtype(), part.shape(), part.raw(),
                                 strides_of(part.shape()).data(),
                                 Moves(part.dtype()).at(y.mutable_raw(), offset), strides.data()));
    ctx.set_output(0, std::move(y));
    return ok_status();
  }
  TROUPE_TRY(dispatch<Status>(FloatsAndComplex{}, part.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    T* to = y.mutable_data<T>() + offset;
    const T* from = part.data<T>();
    const int last = part.rank() - 1;
    const std::int64_t step = last < 0 ? 1 : strides[std::size_t(last)];
    if (part.elements() != 0)
      strided_rows(part.shape(), strides_of(part.shape()), strides,
                   Range{0, row_count(part.shape())},
                   [&](std::int64_t a, std::int64_t b, std::int64_t n) {
                     for (std::int64_t i = 0; i < n; ++i)
                       to[b + i * step] = T(to[b + i * step] + from[a + i]);
                   });
    return ok_status();
  }));
  ctx.set_output(0, std::move(y));
  return ok_status();
}

}  // namespace troupe
