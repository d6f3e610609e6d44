// What a step of an LSTM computes of one unit, and its gradient.
#pragma once

namespace troupe::formula {

// From the gradients of h and next those of what the gates i, f, g and o are computed of, and of
// the state before; t = tanh(next).
template <class T>
struct LstmSlopes {
  T i, f, g, o, c;

  static constexpr LstmSlopes of(T dh, T dnext, T i, T f, T g, T o, T c, T t) {
    const T d = dnext + dh * o * ((1 - t) * (1 + t));  // 1 - t * t would lose digits
    return {d * g * (i * (1 - i)), d * c * (f * (1 - f)), d * i * ((1 - g) * (1 + g)),
            dh * t * (o * (1 - o)), d * f};
  }
};

}  // namespace troupe::formula
