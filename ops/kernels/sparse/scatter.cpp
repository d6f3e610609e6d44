// ScatterAdd, ScatterSub, ScatterUpdate: writes of some rows of a variable.
#include "ops/formulas/arithmetic.hpp"
#include "ops/kernels/state/update_rows.hpp"
#include "ops/kernels/support/moves.hpp"
#include "ops/kernels/support/types.hpp"
#include "ops/kernels/support/views.hpp"

using namespace troupe;

namespace {

Status rows_shape(InferenceContext& c) {
  TROUPE_TRY(check_rows(c.shape(0), c.shape(1), c.shape(2)));
  const PartialShape& variable = c.shape(0);
  if (c.value(1) && variable.known_rank() && variable.known(0))
    TROUPE_TRY(check_indices(*c.value(1), variable.dim(0)));
  for (int i = 0; i < c.outputs(); ++i) c.set(i, variable);
  return ok_status();
}

Status check_rows(const KernelContext& c) {
  const Tensor &variable = c.input(0), &indices = c.input(1);
  TROUPE_TRY(check_rows(variable.shape(), indices.shape(), c.input(2).shape()));
  return check_indices(indices, variable.dim(0));
}

template <class Op>
struct ChangeRows {
  template <class T>
  struct Of final : Kernel {
    Status compute(KernelContext& c) override {
      TROUPE_TRY(check_rows(c));
      TROUPE_TRY(Tensor variable, own_first_input(c));
      scatter<T>(c, c.input(2), c.input(1), variable, Op());
      c.set_output(0, std::move(variable));
      return ok_status();
    }
  };
};

// In the order of the indices: of several rows for one place the last one stays.
Status replace_rows(KernelContext& c) {
  TROUPE_TRY(check_rows(c));
  const Tensor& indices = c.input(1);
  TROUPE_TRY(Tensor variable, own_first_input(c));
  const Moves moves(variable.dtype());
  const std::int64_t row = variable.shape().elements(1, variable.rank());
  void* to = variable.mutable_raw();
  const void* from = c.input(2).raw();
  if (row != 0)
    with_indices(indices, [&](const auto* at) {
      for (std::int64_t i = 0; i < indices.elements(); ++i)
        moves.copy(moves.at(from, i * row), row, moves.at(to, at[i] * row));
    });
  c.set_output(0, std::move(variable));
  return ok_status();
}

using Sums = Types<float, double, std::int32_t, std::int64_t>;

void add_scatter(OpTable& table, std::string name, std::string doc, KernelFactory rule) {
  OpDef write = dense_update({.name = std::move(name),
                              .in = {"var: resource", "indices: Tindex", "rows"},
                              .types = "f32 f64 i32 i64",
                              .attrs = {"Tindex: type {i32 i64} = i64"},
                              .host = {"indices"},
                              .reduce = {"indices", "rows"},
                              .combine = Combine::each,
                              .doc = std::move(doc)});
  write.shape = rows_shape;
  OpDef on_values = rule_on_values_op(write);
  on_values.shape = rows_shape;
  on_values.host = write.host;
  table.add(std::move(write)).cpu(rule).cuda(scatter_rows_on_gpu);
  table.add(std::move(on_values)).cpu(rule);
}

}  // namespace

TROUPE_OPS(scatter) {
  add_scatter(r, "ScatterAdd",
              "var[indices[i], ...] += rows[i, ...], row by row and replica by replica. An index "
              "out of range is an error.",
              typed_kernel<ChangeRows<formula::Add>::Of, Sums>);
  add_scatter(r, "ScatterSub",
              "var[indices[i], ...] -= rows[i, ...], row by row and replica by replica. An index "
              "out of range is an error.",
              typed_kernel<ChangeRows<formula::Sub>::Of, Sums>);
  add_scatter(r, "ScatterUpdate",
              "var[indices[i], ...] = rows[i, ...]. If several rows have the same index, the last "
              "one (in replica order) wins. An index out of range is an error.",
              kernel<replace_rows>);
}
