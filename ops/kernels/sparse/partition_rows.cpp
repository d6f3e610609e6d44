// PartitionRows: where the rows of a table are that is kept in parts.
#include <fmt/core.h>

#include <algorithm>

#include "ops/kernels/support/indices.hpp"

using namespace troupe;

namespace {

Status check_attrs(std::int64_t rows, std::int64_t shards) {
  if (shards >= 1 && rows >= shards) return ok_status();
  return invalid_argument(fmt::format("a table of {} rows has no {} parts", rows, shards));
}

Status partition_rows_shape(InferenceContext& c) {
  TROUPE_TRY(check_attrs(c.int_attr("rows"), c.int_attr("shards")));
  for (int i = 0; i < 2; ++i) c.set(i, c.shape(0));
  return ok_status();
}

// As in TensorFlow's embedding_lookup.
struct PartitionRows final : Kernel {
  explicit PartitionRows(const KernelSpec& s)
      : rows(s.int_attr("rows")),
        shards(s.int_attr("shards")),
        mod(s.string_attr("how") == "mod") {}
  Status compute(KernelContext& ctx) override {
    TROUPE_TRY(check_attrs(rows, shards));
    TROUPE_TRY(check_indices(ctx.input(0), rows));
    return ctx.input(0).dtype() == DType::i32 ? run<std::int32_t>(ctx) : run<std::int64_t>(ctx);
  }

 private:
  template <class T>
  Status run(KernelContext& ctx) const {
    const Tensor& ids = ctx.input(0);
    TROUPE_TRY(Tensor part, ctx.allocate_host(ids.dtype(), ids.shape()));
    TROUPE_TRY(Tensor row, ctx.allocate_host(ids.dtype(), ids.shape()));
    const std::int64_t each = rows / shards, longer = rows % shards;
    const T* const id = ids.data<T>();
    T *const p = part.mutable_data<T>(), *const r = row.mutable_data<T>();
    for (std::int64_t i = 0; i < ids.elements(); ++i) {
      if (mod) {
        p[i] = T(id[i] % shards), r[i] = T(id[i] / shards);
      } else if (longer > 0 && id[i] < longer * (each + 1)) {
        p[i] = T(id[i] / (each + 1)), r[i] = T(id[i] % (each + 1));
      } else {
        p[i] = T((id[i] - longer) / each), r[i] = T((id[i] - longer) % each);
      }
    }
    ctx.set_output(0, std::move(part));
    ctx.set_output(1, std::move(row));
    return ok_status();
  }

  std::int64_t rows, shards;
  bool mod;
};

}  // namespace

TROUPE_OPS(partition_rows) {
  r.add({.name = "PartitionRows",
         .in = {"ids: Tindex"},
         .out = {"part: Tindex", "row: Tindex"},
         .attrs = {"Tindex: type {i32 i64} = i64", "rows: int", "shards: int",
                   "how: string {mod div} = mod"},
         .shape = partition_rows_shape,
         .no_gradient = "an index",
         .host = {"ids", "part", "row"},
         .doc = "In which of `shards` parts of a table of `rows` rows each of the ids is, and as "
                "which row of it. mod: row i is in part i mod shards. div: the first part has the "
                "first rows, the next part the rows behind those. Either way the first rows mod "
                "shards parts have a row more than the others. An id outside [0, rows) is an "
                "error."})
      .cpu(make_kernel<PartitionRows>);
}
