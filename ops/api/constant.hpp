// Constants and placeholders.
#pragma once

#include <concepts>
#include <initializer_list>
#include <string_view>
#include <type_traits>

#include "core/tensor.hpp"
#include "graph/builder.hpp"

namespace troupe {

Output constant(GraphBuilder& g, Tensor value, Site site = Site::here());
// A scalar: constant(g, 0.5f).
template <class T>
requires(dtype_of<T> != DType::invalid) Output
    constant(GraphBuilder& g, T value, Site site = Site::here()) {
  return constant(g, Tensor::scalar<T>(std::move(value)), std::move(site));
}
// constant<float>(g, {2, 2}, {1, 2, 3, 4}). Throws Error unless the values fill the shape.
template <class T>
Output constant(GraphBuilder& g, const Shape& shape, std::initializer_list<T> values,
                Site site = Site::here()) {
  if (std::int64_t(values.size()) != shape.elements())
    throw Error(invalid_argument("constant: " + std::to_string(values.size()) +
                                 " values for shape " + shape.text())
                    .at(site));
  return constant(g, Tensor::of<T>(shape, values), std::move(site));
}

// A number as a scalar tensor of any numeric dtype; invalid_argument when it does not fit there
// (1.5 or 300 as u8).
Expected<Tensor> scalar_of(DType dtype, double value);
Expected<Tensor> scalar_of(DType dtype, std::int64_t value);

// What a run must feed.
Output placeholder(GraphBuilder& g, DType dtype, const PartialShape& shape,
                   std::string_view name = {}, Site site = Site::here());
template <class T>
Output placeholder(GraphBuilder& g, const PartialShape& shape, std::string_view name = {},
                   Site site = Site::here()) {
  return placeholder(g, dtype_of<T>, shape, name, std::move(site));
}

}  // namespace troupe
