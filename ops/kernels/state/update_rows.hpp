// What the update rules of some rows of a variable share: writes whose last operands are "indices"
// and "rows", the gradient of a Gather, in place of "grad". What rows of one place add up to is
// applied once, and no other row is read or written.
#pragma once

#include "ops/kernels/state/update.hpp"
#include "ops/kernels/support/indices.hpp"

namespace troupe {

// Rows of `variable` by `indices` have the shape of `rows`.
inline Status check_rows(const PartialShape& variable, const PartialShape& indices,
                         const PartialShape& rows) {
  if (variable.known_rank() && variable.rank() == 0)
    return invalid_argument("the variable is a scalar, which has no rows");
  TROUPE_TRY(const PartialShape wanted, append(indices, variable, 1));
  if (PartialShape::merge(wanted, rows).ok()) return ok_status();
  return invalid_argument("rows has shape " + rows.text() + ", but " + indices.text() +
                          " indices into a variable of shape " + variable.text() + " want " +
                          wanted.text());
}

// Variables and what is like them have one shape, a step and the other operands are scalars.
// Outputs, of a rule on values, are shaped like the variables they are of.
inline Status rows_update_shape(InferenceContext& c) {
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

template <KernelFactory kRule>
void add_rows_write(OpTable& table, const OpDef& def) {
  OpDef write = dense_update(def);
  write.shape = rows_update_shape;
  OpDef on_values = rule_on_values_op(write);
  on_values.shape = rows_update_shape;
  on_values.host = write.host;
  table.add(std::move(write)).cpu(kRule);
  table.add(std::move(on_values)).cpu(kRule);
}

// As add_update(), of a rule of rows.
template <KernelFactory kRule>
void add_rows_update(OpTable& table, OpDef def) {
  def.in.insert(def.in.end(), {"indices: Tindex", "rows"});
  def.types = "f32 f64";
  def.attrs.emplace_back("Tindex: type {i32 i64} = i64");
  def.host = {"indices"};
  def.reduce = {"indices", "rows"};
  def.combine = Combine::rows;
  OpDef when = def;
  when.name += "When";
  when.in.push_back("when: bool");
  when.doc = "As " + def.name + ", in a run in which `when` is true; nothing changes in others.";
  add_rows_write<kRule>(table, def);
  add_rows_write<only_when<kRule>>(table, when);
}

// f(values[i]..., sum[i]) for every element of a place that rows are for, with the sum of its rows
// in their order. Lanes share the places.
template <class T, class F>
Status update_rows(const KernelContext& c, const Tensor& indices, const Tensor& rows, F f,
                   const std::same_as<NewValue<T>> auto&... values) {
  const Shape& shape = c.input(0).shape();
  TROUPE_TRY(
      check_rows(PartialShape(shape), PartialShape(indices.shape()), PartialShape(rows.shape())));
  TROUPE_TRY(check_indices(indices, shape.dim(0)));
  (values.bring_all(c), ...);
  const std::int64_t n = indices.elements(), row = shape.elements(1, shape.rank());
  if (n == 0 || row == 0) return ok_status();
  const std::vector<std::int64_t> order = by_place(indices);
  with_indices(indices, [&](const auto* at) {
    std::vector<std::int64_t> begins;  // of each place, in `order`
    for (std::int64_t i = 0; i < n; ++i)
      if (i == 0 || at[order[std::size_t(i)]] != at[order[std::size_t(i) - 1]]) begins.push_back(i);
    begins.push_back(n);
    const T* from = rows.data<T>();
    const Chunks chunks = row_chunks(std::int64_t(begins.size()) - 1, row);
    c.parallel(chunks.count, [&](std::int64_t chunk) {
      std::vector<T> sum;
      const Range places = chunks[chunk];
      for (std::int64_t p = places.begin; p < places.end; ++p) {
        const std::int64_t begin = begins[std::size_t(p)], end = begins[std::size_t(p) + 1];
        const T* whole = from + order[std::size_t(begin)] * row;
        if (end - begin > 1) {
          sum.assign(whole, whole + row);
          for (std::int64_t i = begin + 1; i < end; ++i) {
            const T* more = from + order[std::size_t(i)] * row;
            for (std::int64_t k = 0; k < row; ++k) sum[std::size_t(k)] += more[k];
          }
          whole = sum.data();
        }
        const std::int64_t to = std::int64_t(at[order[std::size_t(begin)]]) * row;
        update_range<T>(f, row, whole, values.bring(to, to + row)...);
      }
    });
  });
  return ok_status();
}

// The update of a rule that is for whole gradients and for rows: by operand `first`, or by the two
// from there on.
template <class T, bool kRows, class F>
Status update_by(const KernelContext& c, int first, F f,
                 const std::same_as<NewValue<T>> auto&... values) {
  if constexpr (kRows) return update_rows<T>(c, c.input(first), c.input(first + 1), f, values...);
  update_elements(c, c.input(first).data<T>(), f, values...);
  return ok_status();
}

}  // namespace troupe
