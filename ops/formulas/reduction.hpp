// What reductions join elements by. A sum is kept in Sum<T>, begins as start and ends as finish.
#pragma once

#include <cstdint>
#include <limits>
#include <type_traits>

namespace troupe::formula {

struct SumOf {
  template <class S>
  static constexpr S start() {
    return S(0);
  }
  template <class S>
  constexpr S operator()(S a, S b) const {
    return S(a + b);
  }
};
struct MeanOf : SumOf {  // the mean of nothing is NaN
  template <class S>
  static constexpr S finish(S sum, std::int64_t n) {
    return n == 0 ? std::numeric_limits<S>::quiet_NaN() : sum / S(n);
  }
};
struct ProdOf {
  template <class S>
  static constexpr S start() {
    return S(1);
  }
  template <class S>
  constexpr S operator()(S a, S b) const {
    if constexpr (std::is_integral_v<S>)
      return S(std::uint64_t(a) * std::uint64_t(b));  // u16 would go through a signed int
    else
      return a * b;
  }
};
struct MaxOf {  // NaN wins
  template <class S>
  static constexpr S start() {
    if constexpr (std::is_integral_v<S>)
      return std::numeric_limits<S>::min();
    else
      return -std::numeric_limits<S>::infinity();
  }
  template <class S>
  constexpr S operator()(S a, S b) const {
    return b > a || b != b ? b : a;
  }
};
struct MinOf {
  template <class S>
  static constexpr S start() {
    if constexpr (std::is_integral_v<S>)
      return std::numeric_limits<S>::max();
    else
      return std::numeric_limits<S>::infinity();
  }
  template <class S>
  constexpr S operator()(S a, S b) const {
    return b < a || b != b ? b : a;
  }
};
struct AllOf {
  template <class S>
  static constexpr S start() {
    return true;
  }
  constexpr bool operator()(bool a, bool b) const { return a && b; }
};
struct AnyOf {
  template <class S>
  static constexpr S start() {
    return false;
  }
  constexpr bool operator()(bool a, bool b) const { return a || b; }
};

}  // namespace troupe::formula
