// Arguments of the wrappers that take axes, permutations and sizes by position.
#pragma once

#include <concepts>
#include <cstdint>
#include <vector>

namespace troupe {

template <class T>
concept Integer = std::integral<T> && !std::same_as<T, bool>;

// One or more integers: 1, {0, 2}, or a vector of them. An empty list is no Ints: sum(x, {}) means
// the default options.
class Ints {
 public:
  template <Integer... T>
  requires(sizeof...(T) > 0) Ints(T... values) : values_{std::int64_t(values)...} {}
  Ints(std::vector<std::int64_t> values) : values_(std::move(values)) {}

  operator const std::vector<std::int64_t>&() const { return values_; }

 private:
  std::vector<std::int64_t> values_;
};

// A bool to which numbers do not convert: sum(x, 0, 1) does not compile, as 1 is probably an axis.
class Flag {
 public:
  template <std::same_as<bool> T>
  Flag(T value) : value_(value) {}
  operator bool() const { return value_; }

 private:
  bool value_;
};

}  // namespace troupe
