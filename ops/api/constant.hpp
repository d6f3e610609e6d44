// Constants and placeholders.
#pragma once

#include <algorithm>
#include <concepts>
#include <initializer_list>
#include <span>
#include <string_view>
#include <type_traits>
#include <vector>

#include "core/tensor.hpp"
#include "graph/builder.hpp"

namespace troupe {

namespace detail {
// Throws Error for a row that is not as long as the first.
void check_row(std::size_t length, std::size_t first, const Site& site);

// A vector of bool has no array inside.
template <class T>
Tensor vector_of(const std::vector<T>& values) {
  Tensor t = value_or_throw(Tensor::make(dtype_of<T>, Shape{std::int64_t(values.size())}));
  std::copy(values.begin(), values.end(), t.template mutable_data<T>());
  return t;
}
}  // namespace detail

Output constant(GraphBuilder& g, Tensor value, Site site = Site::here());
// A scalar: constant(g, 0.5f); of another type than the number's: constant<double>(g, 1).
template <class T = void, class Value,
          class Element = std::conditional_t<std::is_void_v<T>, Value, T>>
requires(dtype_of<Element> != DType::invalid && std::is_convertible_v<Value, Element>) Output
    constant(GraphBuilder& g, Value value, Site site = Site::here()) {
  return constant(g, Tensor::scalar<Element>(Element(std::move(value))), std::move(site));
}
// A dimension of a shape, as i64. Throws Error if the dimension is unknown before a run.
Output constant(GraphBuilder& g, Dim length, Site site = Site::here());
// constant<float>(g, {2, 2}, {1, 2, 3, 4}). Throws Error unless there is one value per element.
template <class T>
Output constant(GraphBuilder& g, const Shape& shape, std::initializer_list<T> values,
                Site site = Site::here()) {
  const std::span<const T> all(values.begin(), values.size());
  return constant(g, Tensor::of<T>(shape, all, site.file.c_str(), int(site.line)), site);
}

// A vector: constant(g, {1.f, 2.f}).
template <class T>
requires(dtype_of<T> != DType::invalid) Output
    constant(GraphBuilder& g, std::initializer_list<T> values, Site site = Site::here()) {
  return constant(g, Tensor::of<T>(Shape{std::int64_t(values.size())}, values), std::move(site));
}
template <class T>
requires(dtype_of<T> != DType::invalid) Output
    constant(GraphBuilder& g, const std::vector<T>& values, Site site = Site::here()) {
  return constant(g, detail::vector_of<T>(values), std::move(site));
}
// A matrix, row by row: constant(g, {{1.f, 2.f}, {3.f, 4.f}}). Throws Error if rows differ in
// length.
template <class T>
requires(dtype_of<T> != DType::invalid) Output
    constant(GraphBuilder& g, std::initializer_list<std::initializer_list<T>> rows,
             Site site = Site::here()) {
  std::vector<T> values;
  const std::size_t columns = rows.size() == 0 ? 0 : rows.begin()->size();
  for (const auto& row : rows) {
    detail::check_row(row.size(), columns, site);
    values.insert(values.end(), row.begin(), row.end());
  }
  const Shape shape{std::int64_t(rows.size()), std::int64_t(columns)};
  return constant(g, detail::vector_of<T>(values).reshaped(shape), std::move(site));
}

// A tensor of the given shape, filled with 0, 1 or a value: zeros(g, {3}), ones<double>(g, {2, 2}),
// fill(g, {}, 0.5f). Throws Error for a negative dimension.
Output zeros(GraphBuilder& g, const std::vector<std::int64_t>& shape, DType dtype = DType::f32,
             Site site = Site::here());
Output ones(GraphBuilder& g, const std::vector<std::int64_t>& shape, DType dtype = DType::f32,
            Site site = Site::here());
Output fill(GraphBuilder& g, const std::vector<std::int64_t>& shape, Tensor scalar,
            Site site = Site::here());
template <class T>
Output zeros(GraphBuilder& g, const std::vector<std::int64_t>& shape, Site site = Site::here()) {
  return zeros(g, shape, dtype_of<T>, std::move(site));
}
template <class T>
Output ones(GraphBuilder& g, const std::vector<std::int64_t>& shape, Site site = Site::here()) {
  return ones(g, shape, dtype_of<T>, std::move(site));
}
template <class T>
requires(dtype_of<T> != DType::invalid) Output
    fill(GraphBuilder& g, const std::vector<std::int64_t>& shape, T value,
         Site site = Site::here()) {
  return fill(g, shape, Tensor::scalar<T>(std::move(value)), std::move(site));
}

// A number as a scalar tensor of any numeric dtype. invalid_argument if the dtype cannot represent
// it (1.5 or 300 as u8).
Expected<Tensor> scalar_of(DType dtype, double value);
Expected<Tensor> scalar_of(DType dtype, std::int64_t value);
Expected<Tensor> scalar_of(DType dtype, std::uint64_t value);

// A value that every run must feed.
Output placeholder(GraphBuilder& g, DType dtype, const PartialShape& shape,
                   std::string_view name = {}, Site site = Site::here());
template <class T>
Output placeholder(GraphBuilder& g, const PartialShape& shape, std::string_view name = {},
                   Site site = Site::here()) {
  return placeholder(g, dtype_of<T>, shape, name, std::move(site));
}

}  // namespace troupe
