#include "ops/api/constant.hpp"

#include <fmt/format.h>

#include <complex>
#include <limits>

#include "core/rounding.hpp"
#include "ops/api/generated.hpp"

namespace troupe {

namespace {

template <class To, class From>
Expected<Tensor> converted(DType dtype, From value) {
  if constexpr (std::is_integral_v<To> && !std::is_same_v<To, bool>) {
    // In long double, both bounds of every integer type are exact.
    const auto exact = static_cast<long double>(value);
    const bool fits = exact >= static_cast<long double>(std::numeric_limits<To>::min()) &&
                      exact <= static_cast<long double>(std::numeric_limits<To>::max());
    if (!fits || From(To(value)) != value)
      return invalid_argument(fmt::format("{} is no {}", value, dtype_name(dtype)));
  }
  if constexpr (std::is_same_v<To, bool>)
    if (value != 0 && value != 1) return invalid_argument(fmt::format("{} is no bool", value));
  if constexpr (std::is_same_v<To, half> || std::is_same_v<To, bfloat16>)
    return Tensor::scalar(rounded<To>(value));
  else
    return Tensor::scalar(static_cast<To>(value));
}

template <class From>
Expected<Tensor> scalar(DType dtype, From value) {
  switch (dtype) {
    case DType::f32:
      return converted<float>(dtype, value);
    case DType::f64:
      return converted<double>(dtype, value);
    case DType::f16:
      return converted<half>(dtype, value);
    case DType::bf16:
      return converted<bfloat16>(dtype, value);
    case DType::i8:
      return converted<std::int8_t>(dtype, value);
    case DType::i16:
      return converted<std::int16_t>(dtype, value);
    case DType::i32:
      return converted<std::int32_t>(dtype, value);
    case DType::i64:
      return converted<std::int64_t>(dtype, value);
    case DType::u8:
      return converted<std::uint8_t>(dtype, value);
    case DType::u16:
      return converted<std::uint16_t>(dtype, value);
    case DType::u32:
      return converted<std::uint32_t>(dtype, value);
    case DType::u64:
      return converted<std::uint64_t>(dtype, value);
    case DType::bool_:
      return converted<bool>(dtype, value);
    case DType::c64:
      return Tensor::scalar(std::complex<float>(float(value)));
    case DType::c128:
      return Tensor::scalar(std::complex<double>(double(value)));
    default:
      break;
  }
  return invalid_argument("a number is no " + std::string(dtype_name(dtype)));
}

}  // namespace

Output constant(GraphBuilder& g, Tensor value, Site site) {
  NodeSpec node{.op = "Const", .site = std::move(site)};
  node.attrs.emplace("T", value.dtype());
  node.attrs.emplace("value", std::move(value));
  return g.add(std::move(node)).output();
}

Output constant(GraphBuilder& g, Dim length, Site site) {
  if (!length.known())
    throw Error(
        failed_precondition("the dimension is not known before a run: take it from shape(x)")
            .at(site));
  return constant(g, Tensor::scalar(length.value()), std::move(site));
}

Expected<Tensor> scalar_of(DType dtype, double value) { return scalar(dtype, value); }
Expected<Tensor> scalar_of(DType dtype, std::int64_t value) { return scalar(dtype, value); }

Expected<Tensor> scalar_of(DType dtype, std::uint64_t value) { return scalar(dtype, value); }

void detail::check_row(std::size_t length, std::size_t first, const Site& site) {
  if (length != first)
    throw Error(invalid_argument("constant: a row of " + std::to_string(length) +
                                 " values after one of " + std::to_string(first))
                    .at(site));
}

Output fill(GraphBuilder& g, const std::vector<std::int64_t>& shape, Tensor scalar, Site site) {
  if (auto checked = Shape::make(shape); !checked.ok()) throw Error(checked.status().at(site));
  const Output dims = constant(g, detail::vector_of<std::int64_t>(shape), site);
  return fill(dims, constant(g, std::move(scalar), site), site);
}
Output zeros(GraphBuilder& g, const std::vector<std::int64_t>& shape, DType dtype, Site site) {
  auto zero = Tensor::zeros(dtype, Shape{});
  if (!zero.ok()) throw Error(zero.status().at(site));
  return fill(g, shape, std::move(zero).value(), std::move(site));
}
Output ones(GraphBuilder& g, const std::vector<std::int64_t>& shape, DType dtype, Site site) {
  auto one = scalar_of(dtype, std::int64_t{1});
  if (!one.ok()) throw Error(one.status().at(site));
  return fill(g, shape, std::move(one).value(), std::move(site));
}

Output placeholder(GraphBuilder& g, DType dtype, const PartialShape& shape, std::string_view name,
                   Site site) {
  NodeSpec node{.op = "Placeholder", .name = std::string(name), .site = std::move(site)};
  node.attrs.emplace("T", dtype);
  node.attrs.emplace("shape", shape);
  return g.add(std::move(node)).output();
}

}  // namespace troupe
