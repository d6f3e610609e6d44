// Values as text, for print("{}", tensor) and std::cout << x.shape().
#pragma once

#include <fmt/core.h>

#include <concepts>
#include <iosfwd>
#include <string>

#include "core/dtype.hpp"
#include "core/status.hpp"
#include "core/tensor.hpp"
#include "graph/builder.hpp"

namespace troupe {

// What Tensor::text() says, and the others likewise; of an Output "name: f32[2,3]".
std::string printed(const Tensor& x);
std::string printed(const Shape& x);
std::string printed(const PartialShape& x);
std::string printed(const Status& x);
std::string printed(const Output& x);
std::string printed(DType x);

template <class T>
concept PrintedAsText =
    std::same_as<T, Tensor> || std::same_as<T, Shape> || std::same_as<T, PartialShape> ||
    std::same_as<T, Status> || std::same_as<T, Output> || std::same_as<T, DType>;

std::ostream& operator<<(std::ostream& out, const Tensor& x);
std::ostream& operator<<(std::ostream& out, const Shape& x);
std::ostream& operator<<(std::ostream& out, const PartialShape& x);
std::ostream& operator<<(std::ostream& out, const Status& x);
std::ostream& operator<<(std::ostream& out, const Output& x);
std::ostream& operator<<(std::ostream& out, DType x);

}  // namespace troupe

template <troupe::PrintedAsText T>
struct fmt::formatter<T> : fmt::formatter<fmt::string_view> {
  // In text.cpp: what it takes of fmt is long to compile.
  fmt::format_context::iterator format(const T& x, fmt::format_context& context) const;
};
