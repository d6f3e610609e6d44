// Numbers as text, the same under every locale.
#pragma once

#include <charconv>
#include <optional>
#include <string_view>

namespace troupe {

// The number that all of `text` is, as std::from_chars reads it: decimal, no leading space or plus
// sign, "inf" and "nan" for floats. nullopt for other text, and for a number that T is too narrow
// for.
template <class T>
std::optional<T> parse_number(std::string_view text) {
  T value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return value;
}
// A float too close to 0 for its type is 0.
template <>
std::optional<float> parse_number<float>(std::string_view text);
template <>
std::optional<double> parse_number<double>(std::string_view text);

}  // namespace troupe
