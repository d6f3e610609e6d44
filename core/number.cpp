#include "core/number.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>

namespace troupe {
namespace {

// Whether a decimal float is below 1 in magnitude. REQUIRES: text that from_chars takes.
bool below_one(std::string_view text) {
  constexpr std::int64_t kFar = std::int64_t{1} << 62;
  const std::size_t e = std::min(text.find_first_of("eE"), text.size());
  const std::string_view digits = text.substr(0, e);
  std::int64_t exponent = 0;
  if (e < text.size()) {
    std::string_view number = text.substr(e + 1);
    if (number.starts_with('+')) number.remove_prefix(1);
    const auto parsed = std::from_chars(number.data(), number.data() + number.size(), exponent);
    if (parsed.ec != std::errc{}) exponent = number.starts_with('-') ? -kFar : kFar;
  }
  const auto point = std::int64_t(std::min(digits.find('.'), digits.size()));
  const std::size_t first = digits.find_first_of("123456789");
  if (first == std::string_view::npos) return true;  // 0
  // The first digit stands for 10^(before): the digits between it and the point.
  const std::int64_t before =
      std::int64_t(first) < point ? point - std::int64_t(first) - 1 : point - std::int64_t(first);
  exponent = std::clamp(exponent, -kFar, kFar);
  return before + exponent < 0;
}

template <class T>
std::optional<T> parse_float(std::string_view text) {
  T value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (end != text.data() + text.size()) return std::nullopt;
  if (error == std::errc{}) return value;
  if (error != std::errc::result_out_of_range || !below_one(text)) return std::nullopt;
  return std::copysign(T{0}, text.starts_with('-') ? T{-1} : T{1});
}

}  // namespace

template <>
std::optional<float> parse_number<float>(std::string_view text) {
  return parse_float<float>(text);
}
template <>
std::optional<double> parse_number<double>(std::string_view text) {
  return parse_float<double>(text);
}

}  // namespace troupe
