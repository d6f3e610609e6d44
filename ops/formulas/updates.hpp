// What rules do to each element of variables.
#pragma once

#include <cmath>
#include <cstdint>

namespace troupe::formula {

struct Descend {  // gradient descent
  template <class T>
  constexpr T operator()(T x, T lr, T gradient) const {
    return x - lr * gradient;
  }
};

// A velocity, plain or Nesterov's. Scalars: lr, momentum.
template <class T, bool nesterov>
struct MomentumStep {
  static constexpr int kValues = 2;
  T lr, momentum;
  static constexpr MomentumStep of(const T* const* scalars, std::int64_t) {
    return {*scalars[0], *scalars[1]};
  }
  constexpr void operator()(T& x, T& velocity, T gradient) const {
    velocity = momentum * velocity + gradient;
    x -= lr * (nesterov ? gradient + momentum * velocity : velocity);
  }
};

// Running moments of the gradient, in step t. Scalars: lr, beta1, beta2, epsilon, and the decay of
// AdamW.
template <class T, bool decays>
struct AdamStep {
  static constexpr int kValues = 3;
  T rate, beta1, beta2, epsilon, decay;
  // Both bias corrections in one factor, in double: they are costly once and cheap for ever. AdamW
  // corrects v before epsilon is added.
  static AdamStep of(const T* const* scalars, std::int64_t t) {
    const T lr = *scalars[0], beta1 = *scalars[1], beta2 = *scalars[2];
    const double root = std::sqrt(1 - std::pow(double(beta2), double(t)));
    return {.rate = T(double(lr) * root / (1 - std::pow(double(beta1), double(t)))),
            .beta1 = beta1,
            .beta2 = beta2,
            .epsilon = T(double(*scalars[3]) * (decays ? root : 1.0)),
            .decay = decays ? lr * *scalars[4] : T(0)};
  }
  constexpr void operator()(T& x, T& m, T& v, T g) const {
    m += (g - m) * (1 - beta1);
    v += (g * g - v) * (1 - beta2);
    if constexpr (decays) x -= decay * x;
    x -= rate * m / (std::sqrt(v) + epsilon);
  }
};

}  // namespace troupe::formula
