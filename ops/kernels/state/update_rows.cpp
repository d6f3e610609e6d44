#include "ops/kernels/state/update_rows.hpp"

#include "ops/cuda/update.hpp"

namespace troupe {

Status check_rows(const PartialShape& variable, const PartialShape& indices,
                  const PartialShape& rows) {
  if (variable.known_rank() && variable.rank() == 0)
    return invalid_argument("the variable is a scalar, which has no rows");
  TROUPE_TRY(const PartialShape wanted, append(indices, variable, 1));
  if (PartialShape::merge(wanted, rows).ok()) return ok_status();
  return invalid_argument("rows has shape " + rows.text() + ", but " + indices.text() +
                          " indices into a variable of shape " + variable.text() + " want " +
                          wanted.text());
}

Status rows_update_shape(InferenceContext& c) {
  PartialShape shape;
  int indices = -1, rows = -1;
  const int targets = std::max(
      c.outputs(), int(std::count_if(c.op().in.begin(), c.op().in.end(), [](const ArgSpec& arg) {
        return arg.dtype == DType::resource;
      })));
  for (int i = 0; i < c.inputs(); ++i) {
    const std::string& name = c.op().in[std::size_t(i)].name;
    if (name == "indices" || name == "rows") {
      (name == "rows" ? rows : indices) = i;
    } else if (i < targets && name != "step") {
      auto merged = PartialShape::merge(shape, c.shape(i));
      if (!merged.ok())
        return invalid_argument(name + " has shape " + c.shape(i).text() +
                                ", but the variable has " + shape.text());
      shape = std::move(merged).value();
    } else {
      TROUPE_TRY(c.want_rank(i, 0));
    }
  }
  TROUPE_TRY(c.want_rank(indices, 1));
  TROUPE_TRY(check_rows(shape, c.shape(indices), c.shape(rows)));
  if (c.value(indices) && shape.known_rank() && shape.known(0))
    TROUPE_TRY(check_indices(*c.value(indices), shape.dim(0)));
  for (int i = 0; i < c.outputs(); ++i)
    c.set(i, c.op().in[std::size_t(i)].name == "step" ? PartialShape::scalar() : shape);
  return ok_status();
}

namespace {

Expected<cuda::PlacedRows> place_rows(const Tensor& variable, const Tensor& indices,
                                      const Tensor& rows) {
  TROUPE_TRY(check_rows(PartialShape(variable.shape()), PartialShape(indices.shape()),
                        PartialShape(rows.shape())));
  TROUPE_TRY(check_indices(indices, variable.dim(0)));
  return cuda::PlacedRows{by_place(indices), places(indices)};
}

}  // namespace

Expected<std::unique_ptr<Kernel>> update_rows_on_gpu(const KernelSpec& spec) {
  return cuda::update_rows(spec, place_rows);
}
Expected<std::unique_ptr<Kernel>> scatter_rows_on_gpu(const KernelSpec& spec) {
  return cuda::scatter_rows(spec, place_rows);
}

OpDef rows_write(OpDef def) {
  OpDef write = dense_update(std::move(def));
  write.shape = rows_update_shape;
  return write;
}

OpDef rows_rule_on_values(const OpDef& write) {
  OpDef on_values = rule_on_values_op(write);
  on_values.shape = rows_update_shape;
  on_values.host = write.host;
  return on_values;
}

OpDef rows_update(OpDef def) {
  def.in.insert(def.in.end(), {"indices: Tindex", "rows"});
  if (def.types.empty()) def.types = "f32 f64";
  def.attrs.emplace_back("Tindex: type {i32 i64} = i64");
  def.host = {"indices"};
  def.reduce = {"indices", "rows"};
  def.combine = Combine::rows;
  return def;
}

}  // namespace troupe
