// Elements that are what they are told to be.
#pragma once

namespace troupe::formula {

struct Same {  // of anything that is moved
  template <class T>
  constexpr T operator()(T x) const {
    return x;
  }
};
template <int value>
struct Filled {
  static constexpr bool wraps = true;
  template <class T>
  constexpr T operator()(T) const {
    return T(value);
  }
};

}  // namespace troupe::formula
