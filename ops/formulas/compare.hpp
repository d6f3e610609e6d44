// Comparisons, logic, and choice between two values.
#pragma once

namespace troupe::formula {

struct Less {
  template <class T>
  constexpr bool operator()(T a, T b) const {
    return a < b;
  }
};
struct LessEqual {
  template <class T>
  constexpr bool operator()(T a, T b) const {
    return a <= b;
  }
};
struct Greater {
  template <class T>
  constexpr bool operator()(T a, T b) const {
    return a > b;
  }
};
struct GreaterEqual {
  template <class T>
  constexpr bool operator()(T a, T b) const {
    return a >= b;
  }
};
struct Equal {
  static constexpr bool wraps = true;
  template <class T>
  constexpr bool operator()(T a, T b) const {
    return a == b;
  }
};
struct NotEqual {
  static constexpr bool wraps = true;
  template <class T>
  constexpr bool operator()(T a, T b) const {
    return a != b;
  }
};
struct And {
  constexpr bool operator()(bool a, bool b) const { return a && b; }
};
struct Or {
  constexpr bool operator()(bool a, bool b) const { return a || b; }
};

struct Choose {  // T is anything that is moved
  template <class T>
  constexpr T operator()(bool condition, T a, T b) const {
    return condition ? a : b;
  }
};

}  // namespace troupe::formula
