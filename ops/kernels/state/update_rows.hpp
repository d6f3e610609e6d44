// What the update rules of some rows of a variable share: writes whose last operands are "indices"
// and "rows", the gradient of a Gather, in place of "grad". What rows of one place add up to is
// applied once, and no other row is read or written.
#pragma once

#include "ops/kernels/state/update.hpp"
#include "ops/kernels/support/indices.hpp"

namespace troupe {

// Rows of `variable` by `indices` have the shape of `rows`.
Status check_rows(const PartialShape& variable, const PartialShape& indices,
                  const PartialShape& rows);

// Variables and what is like them have one shape, a step and the other operands are scalars.
// Outputs, of a rule on values, are shaped like the variables they are of.
Status rows_update_shape(InferenceContext& c);

// The rules of rows on GPUs (ops/cuda/update.hpp).
Expected<std::unique_ptr<Kernel>> update_rows_on_gpu(const KernelSpec& spec);
Expected<std::unique_ptr<Kernel>> scatter_rows_on_gpu(const KernelSpec& spec);

// Definitions of a write of rows, and of what it does to values.
OpDef rows_write(OpDef def);
OpDef rows_rule_on_values(const OpDef& write);
template <KernelFactory kRule>
OpTable::Entry add_rows_write(OpTable& table, OpDef def) {
  const OpDef write = rows_write(std::move(def));
  table.add(rows_rule_on_values(write)).cpu(checked_rule<kRule>);
  return table.add(write).cpu(kRule);
}

// As add_update(), of a rule of rows: `def` without these two operands. Its types are f32 and f64
// unless it says others.
OpDef rows_update(OpDef def);
template <KernelFactory kRule>
void add_rows_update(OpTable& table, OpDef def) {
  const OpDef update = rows_update(std::move(def));
  add_rows_write<kRule>(table, update).cuda(update_rows_on_gpu);
  add_rows_write<only_when<kRule>>(table, only_when(update));
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
  const std::int64_t n = indices.elements(),
                     row = (has_parts<T>(rows) ? 2 : 1) * shape.elements(1, shape.rank());
  if (n == 0 || row == 0) return ok_status();
  const std::vector<std::int64_t> order = by_place(indices), at = places(indices);
  const auto place = [&](std::int64_t i) { return at[std::size_t(order[std::size_t(i)])]; };
  std::vector<std::int64_t> begins;  // of each place, in `order`
  for (std::int64_t i = 0; i < n; ++i)
    if (i == 0 || place(i) != place(i - 1)) begins.push_back(i);
  begins.push_back(n);
  const T* from = parts_of<T>(rows);
  const Chunks chunks = row_chunks(std::int64_t(begins.size()) - 1, row);
  const std::size_t bytes = std::size_t(row) * sizeof(T);
  const std::int64_t ahead = rows_ahead(bytes * sizeof...(values));
  c.parallel(chunks.count, [&](std::int64_t chunk) {
    std::vector<T> sum;
    const Range part = chunks[chunk];
    for (std::int64_t p = part.begin; p < part.end; ++p) {
      const std::int64_t begin = begins[std::size_t(p)], end = begins[std::size_t(p) + 1];
      const T* whole = from + order[std::size_t(begin)] * row;
      if (p + ahead < part.end) {
        const std::int64_t next = place(begins[std::size_t(p + ahead)]) * row;
        (fetch_soon(values.at(next), bytes), ...);
      }
      if (end - begin > 1) {
        sum.assign(whole, whole + row);
        for (std::int64_t i = begin + 1; i < end; ++i) {
          const T* more = from + order[std::size_t(i)] * row;
          for (std::int64_t k = 0; k < row; ++k) sum[std::size_t(k)] += more[k];
        }
        whole = sum.data();
      }
      const std::int64_t to = place(begin) * row;
      update_range<T>(f, row, whole, values.bring(to, to + row)...);
    }
  });
  return ok_status();
}

// The update of a rule that is for whole gradients and for rows: by operand `first`, or by the two
// from there on.
template <class T, bool kRows, class F>
Status update_by(const KernelContext& c, int first, F f,
                 const std::same_as<NewValue<T>> auto&... values) {
  if constexpr (kRows) return update_rows<T>(c, c.input(first), c.input(first + 1), f, values...);
  update_elements(c, parts_of<T>(c.input(first)), f, values...);
  return ok_status();
}

}  // namespace troupe
