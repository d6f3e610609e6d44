// DynamicStitch and its gradient: slices of several tensors put in their places.
#include <fmt/core.h>

#include <cstring>
#include <limits>
#include <span>

#include "ops/kernels/support/indices.hpp"
#include "ops/kernels/support/moves.hpp"

using namespace troupe;

namespace {

// What is known of the slices of all data: their shape behind that of the indices.
Expected<PartialShape> slice_of(const std::vector<PartialShape>& indices,
                                const std::vector<PartialShape>& data) {
  PartialShape slice = PartialShape::unknown();
  for (std::size_t i = 0; i < data.size(); ++i) {
    if (!indices[i].known_rank() || !data[i].known_rank()) continue;
    if (!begins_with(data[i], indices[i]))
      return invalid_argument(fmt::format("indices {} are not the first dimensions of data {}",
                                          indices[i].text(), data[i].text()));
    TROUPE_TRY(const PartialShape own, append(PartialShape::scalar(), data[i], indices[i].rank()));
    auto merged = PartialShape::merge(slice, own);
    if (!merged.ok())
      return invalid_argument(
          fmt::format("slices of data are {} and {}", slice.text(), own.text()));
    slice = std::move(merged).value();
  }
  return slice;
}

Status dynamic_stitch_shape(InferenceContext& c) {
  const int n = c.inputs() / 2;
  std::vector<PartialShape> indices, data;
  for (int i = 0; i < n; ++i) indices.push_back(c.shape(i)), data.push_back(c.shape(n + i));
  TROUPE_TRY(const PartialShape slice, slice_of(indices, data));
  TROUPE_TRY(PartialShape y, append(PartialShape{PartialShape::kUnknown}, slice, 0));
  c.set(0, std::move(y));
  return ok_status();
}

// How many places the indices name: one more than the largest of them.
Expected<std::int64_t> places_of(std::span<const Tensor* const> indices) {
  std::int64_t places = 0;
  Status status;
  for (std::size_t list = 0; list < indices.size(); ++list)
    with_indices(*indices[list], [&](const auto* at) {
      for (std::int64_t i = 0; i < indices[list]->elements() && status.ok(); ++i) {
        if (at[i] < 0 || at[i] == std::numeric_limits<std::int64_t>::max())
          status = invalid_argument(
              fmt::format("element {} of indices {} is {}, which is no place", i, list, at[i]));
        else
          places = std::max(places, std::int64_t(at[i]) + 1);
      }
    });
  TROUPE_TRY(std::move(status));
  return places;
}

// Who fills each place: a slice of one of the lists, counted through all of them; -1 for none. The
// last that names the place.
Expected<Tensor> owners(const KernelContext& ctx, std::span<const Tensor* const> indices,
                        std::int64_t places) {
  TROUPE_TRY(Tensor out, ctx.allocate_host(DType::i64, Shape{places}));
  std::int64_t* const owner = out.mutable_data<std::int64_t>();
  std::fill_n(owner, places, -1);
  std::int64_t number = 0;
  for (const Tensor* list : indices)
    with_indices(*list, [&](const auto* at) {
      for (std::int64_t i = 0; i < list->elements(); ++i) owner[at[i]] = number++;
    });
  return out;
}

// Elements that nobody fills. New strings are empty as they are.
void clear(DType dtype, void* to, std::int64_t n) {
  if (dtype != DType::string) std::memset(to, 0, std::size_t(n) * dtype_size(dtype));
}

// The beginning of each slice, counted as owners() counts them.
std::vector<const void*> slices(const Moves& moves, std::span<const Tensor* const> indices,
                                std::span<const Tensor* const> data, std::int64_t row) {
  std::vector<const void*> out;
  for (std::size_t list = 0; list < data.size(); ++list)
    for (std::int64_t i = 0; i < indices[list]->elements(); ++i)
      out.push_back(row == 0 ? nullptr : moves.at(data[list]->raw(), i * row));
  return out;
}

std::vector<const Tensor*> inputs_from(KernelContext& ctx, int first, int n) {
  std::vector<const Tensor*> out;
  for (int i = 0; i < n; ++i) out.push_back(&ctx.input(first + i));
  return out;
}

std::vector<PartialShape> shapes_of(std::span<const Tensor* const> tensors) {
  std::vector<PartialShape> out;
  for (const Tensor* t : tensors) out.emplace_back(t->shape());
  return out;
}

Status dynamic_stitch(KernelContext& ctx) {
  const int n = ctx.inputs() / 2;
  const auto indices = inputs_from(ctx, 0, n), data = inputs_from(ctx, n, n);
  TROUPE_TRY(const PartialShape slice, slice_of(shapes_of(indices), shapes_of(data)));
  TROUPE_TRY(const std::int64_t places, places_of(indices));
  TROUPE_TRY(const PartialShape dims, append(PartialShape{places}, slice, 0));
  TROUPE_TRY(const Shape shape, Shape::make(dims.dims()));
  const DType dtype = data.front()->dtype();
  TROUPE_TRY(Tensor y, ctx.allocate(dtype, shape));
  if (y.elements() != 0) {
    TROUPE_TRY(const Tensor owner, owners(ctx, indices, places));
    const std::int64_t* const by = owner.data<std::int64_t>();
    const Moves moves(dtype);
    const std::int64_t row = y.elements() / places;
    const std::vector<const void*> from = slices(moves, indices, data, row);
    void* const to = y.mutable_raw();
    const Chunks chunks = row_chunks(places, row);
    ctx.parallel(chunks.count, [&](std::int64_t c) {
      for (std::int64_t i = chunks[c].begin; i < chunks[c].end; ++i) {
        void* const place = moves.at(to, i * row);
        if (by[i] >= 0)
          moves.copy(from[std::size_t(by[i])], row, place);
        else
          clear(dtype, place, row);
      }
    });
  }
  ctx.set_output(0, std::move(y));
  return ok_status();
}

std::vector<Output> dynamic_stitch_grad(GradContext& c) {
  const std::size_t n = c.x.size() / 2;
  NodeSpec spec{.op = "DynamicStitchGrad", .inputs = {c.dy[0]}};
  spec.inputs.insert(spec.inputs.end(), c.x.begin(), c.x.begin() + std::ptrdiff_t(n));
  std::vector<Output> dx(n);
  for (const Output& each : c.g.add(std::move(spec)).outputs()) dx.push_back(each);
  return dx;
}

Status dynamic_stitch_grad_shape(InferenceContext& c) {
  TROUPE_TRY(c.want_rank_at_least(0, 1));
  for (int i = 0; i < c.outputs(); ++i) {
    TROUPE_TRY(PartialShape shape, append(c.shape(i + 1), c.shape(0), 1));
    c.set(i, std::move(shape));
  }
  return ok_status();
}

Status dynamic_stitch_grad_kernel(KernelContext& ctx) {
  const Tensor& dy = ctx.input(0);
  const auto indices = inputs_from(ctx, 1, ctx.outputs());
  TROUPE_TRY(const std::int64_t places, places_of(indices));
  if (dy.rank() == 0 || dy.dim(0) != places)
    return invalid_argument(
        fmt::format("dy is {} beside indices of {} places", dy.shape().text(), places));
  std::vector<Tensor> dx;
  for (const Tensor* at : indices) {
    TROUPE_TRY(const PartialShape dims, append(at->shape(), dy.shape(), 1));
    TROUPE_TRY(const Shape shape, Shape::make(dims.dims()));
    TROUPE_TRY(Tensor each, ctx.allocate(dy.dtype(), shape));
    dx.push_back(std::move(each));
  }
  if (dy.elements() != 0) {
    TROUPE_TRY(const Tensor owner, owners(ctx, indices, places));
    const std::int64_t* const by = owner.data<std::int64_t>();
    const std::int64_t row = dy.elements() / places;
    const Moves moves(dy.dtype());
    std::int64_t first = 0;
    for (std::size_t list = 0; list < dx.size(); ++list) {
      const Tensor& at = *indices[list];
      const Chunks chunks = row_chunks(at.elements(), row);
      if (at.elements() == 0) continue;
      void* const to = dx[list].mutable_raw();
      ctx.parallel(chunks.count, [&](std::int64_t c) {
        with_indices(at, [&, r = chunks[c]](const auto* place) {
          for (std::int64_t i = r.begin; i < r.end; ++i) {
            if (by[place[i]] == first + i)
              moves.copy(moves.at(dy.raw(), place[i] * row), row, moves.at(to, i * row));
            else
              clear(dy.dtype(), moves.at(to, i * row), row);
          }
        });
      });
      first += at.elements();
    }
  }
  for (std::size_t list = 0; list < dx.size(); ++list)
    ctx.set_output(int(list), std::move(dx[list]));
  return ok_status();
}

// The gradients of the parts, stitched as the parts were: what a slice lost, it does not give.
std::vector<Output> dynamic_stitch_grad_grad(GradContext& c) {
  NodeSpec spec{.op = "DynamicStitch"};
  spec.inputs.assign(c.x.begin() + 1, c.x.end());
  spec.inputs.insert(spec.inputs.end(), c.dy.begin(), c.dy.end());
  std::vector<Output> dx(c.x.size());
  dx[0] = c.g.add(std::move(spec)).output();
  return dx;
}

}  // namespace

TROUPE_OPS(dynamic_stitch) {
  r.add({.name = "DynamicStitch",
         .in = {"indices: Tindex...", "data: T..."},
         .out = {"y"},
         .types = kAllTypes,
         .attrs = {"Tindex: type {i32 i64} = i64"},
         .shape = dynamic_stitch_shape,
         .grad = dynamic_stitch_grad,
         .host = {"indices"},
         .doc = "y[indices[l][i, j], ...] = data[l][i, j, ...] for each list l: [places, ...], one "
                "more than the largest index. Of slices with one index the last one stays, and "
                "places that no index names are 0, or empty strings. The shape of indices begins "
                "that of their data. A negative index is an error."})
      // Not on devices that want to know shapes before a kernel has run.
      .on("CPU", kernel<dynamic_stitch>);
  r.add({.name = "DynamicStitchGrad",
         .in = {"dy", "indices: Tindex..."},
         .out = {"dx: T..."},
         .types = kAllTypes,
         .attrs = {"Tindex: type {i32 i64} = i64"},
         .shape = dynamic_stitch_grad_shape,
         .grad = dynamic_stitch_grad_grad,
         .host = {"indices"},
         .doc = "The slices of dy at the indices of each list, and 0 for those that DynamicStitch "
                "did not keep: its gradient for data."})
      .cpu(kernel<dynamic_stitch_grad_kernel>);
}
