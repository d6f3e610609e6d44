#include "ops/cuda/rows.hpp"

#include <algorithm>

#include "ops/cuda/element_types.hpp"
#include "ops/cuda/launch.hpp"
#include "ops/cuda/moves.hpp"
#include "ops/device/arguments.hpp"

namespace troupe::cuda {

RowTaker::RowTaker(DType dtype, DType index)
    : function_{device_type("TakeRows", {moved_type(dtype), element_type(index)})} {}

Status RowTaker::operator()(const KernelContext& ctx, const Tensor& x, const RowView& view,
                            const Tensor& indices, Tensor& y) const {
  if (y.elements() == 0) return ok_status();
  TROUPE_TRY(const Tensor there, uploaded(ctx, indices));
  device::TakeRowsArgs args{x.raw(),   there.raw(),        y.mutable_raw(), view.outer,
                            view.size, indices.elements(), view.inner};
  return launch(ctx, function_, grid_for(y.elements()), &args);
}

std::string fold_type(const std::string& fold, DType dtype) {
  return device_type("FoldRows", {"troupe::device::" + fold, element_type(dtype)});
}

RowFolder::RowFolder(const std::string& fold, DType dtype, bool wraps)
    : functions_{GpuFunction{fold_type(fold, wraps ? without_sign(dtype) : dtype)},
                 GpuFunction{device_type("FillWith", {element_type(dtype)})}} {}

Status RowFolder::fill_zeros(const KernelContext& ctx, Tensor& y) const {
  device::FillArgs args{y.mutable_raw(), y.elements(), 0};
  return args.n == 0 ? ok_status() : launch(ctx, functions_[1], grid_for(args.n), &args);
}

namespace {

Expected<RowGroups> upload(const KernelContext& ctx, const std::vector<std::int64_t>& places,
                           const std::vector<std::int64_t>& begins,
                           std::span<const std::int64_t> order) {
  const auto numbers = std::int64_t(places.size() + begins.size() + order.size());
  TROUPE_TRY(Tensor here, ctx.allocate_host(DType::i64, Shape{numbers}));
  std::int64_t* to = here.mutable_data<std::int64_t>();
  to = std::copy(places.begin(), places.end(), to);
  to = std::copy(begins.begin(), begins.end(), to);
  std::copy(order.begin(), order.end(), to);
  TROUPE_TRY(Tensor there, uploaded(ctx, here));
  return RowGroups{std::move(there), std::int64_t(places.size())};
}

}  // namespace

Expected<RowGroups> RowGroups::of(const KernelContext& ctx, std::span<const std::int64_t> order,
                                  std::span<const std::int64_t> places) {
  std::vector<std::int64_t> which, begins;
  for (std::size_t i = 0; i < order.size(); ++i) {
    const std::int64_t place = places[std::size_t(order[i])];
    if (!which.empty() && which.back() == place) continue;
    which.push_back(place);
    begins.push_back(std::int64_t(i));
  }
  begins.push_back(std::int64_t(order.size()));
  return upload(ctx, which, begins, order);
}

Status RowFolder::add(const KernelContext& ctx, const Tensor& x,
                      std::span<const std::int64_t> order, std::span<const std::int64_t> places,
                      const RowView& view, Tensor& y) const {
  TROUPE_TRY(const RowGroups groups, RowGroups::of(ctx, order, places));
  return fold_rows(ctx, functions_[0], x, groups, view, y);
}

Status RowFolder::join(const KernelContext& ctx, const Tensor& x,
                       std::span<const std::int64_t> order, std::span<const std::int64_t> places,
                       const RowView& view, const Nothing& nothing, Tensor& y) const {
  std::vector<std::int64_t> which(std::size_t(view.size)), begins(which.size() + 1, 0);
  for (std::size_t i = 0; i < which.size(); ++i) which[i] = std::int64_t(i);
  for (const std::int64_t place : places) ++begins[std::size_t(place) + 1];
  for (std::size_t i = 1; i < begins.size(); ++i) begins[i] += begins[i - 1];
  TROUPE_TRY(const RowGroups groups, upload(ctx, which, begins, order));
  return fold_rows(ctx, functions_[0], x, groups, view, y, nothing);
}

Status fold_rows(const KernelContext& ctx, const GpuFunction& fold, const Tensor& x,
                 const RowGroups& groups, const RowView& view, Tensor& y, const Nothing& nothing) {
  const std::int64_t elements = groups.count * view.outer * view.inner;
  if (elements == 0) return ok_status();
  device::FoldRowsArgs args{x.raw(),
                            groups.there.raw(),
                            y.mutable_raw(),
                            groups.count,
                            view.outer,
                            view.size,
                            x.elements() / std::max<std::int64_t>(1, view.outer * view.inner),
                            view.inner,
                            nothing.number,
                            nothing.integer};
  return launch(ctx, fold, grid_for(elements), &args);
}

}  // namespace troupe::cuda
