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

// Scalar: lr.
template <class T>
struct DescendStep {
  static constexpr int kValues = 1;
  T lr;
  static constexpr DescendStep of(const T* const* scalars, std::int64_t) { return {*scalars[0]}; }
  constexpr void operator()(T& x, T gradient) const { x = Descend{}(x, lr, gradient); }
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

// Adam's moments; the step is scaled by the ratio of the variable's norm to that of its move.
// Scalars: lr, beta1, beta2, epsilon, decay.
template <class T>
struct LambStep {
  T beta1, beta2, epsilon, decay, first, second;
  static LambStep of(const T* const* scalars, std::int64_t t) {
    const T beta1 = *scalars[1], beta2 = *scalars[2];
    return {beta1,
            beta2,
            *scalars[3],
            *scalars[4],
            T(1 / (1 - std::pow(double(beta1), double(t)))),
            T(1 / (1 - std::pow(double(beta2), double(t))))};
  }
  constexpr void moments(T& m, T& v, T g) const {
    m += (g - m) * (1 - beta1);
    v += (g * g - v) * (1 - beta2);
  }
  T move(T x, T m, T v) const { return first * m / (std::sqrt(second * v) + epsilon) + decay * x; }
  // From the sums of their squares.
  static T rate(T lr, double of_variable, double of_move) {
    const double norm = std::sqrt(of_variable), length = std::sqrt(of_move);
    return norm > 0 && length > 0 ? T(double(lr) * (norm / length)) : lr;
  }
};

// Steps scaled by the sum of all squared gradients. Scalars: lr, initial, epsilon.
template <class T>
struct AdagradStep {
  static constexpr int kValues = 2;
  T lr, initial, epsilon;
  static constexpr AdagradStep of(const T* const* scalars, std::int64_t) {
    return {*scalars[0], *scalars[1], *scalars[2]};
  }
  void operator()(T& x, T& sum, T g) const {
    sum += g * g;
    x -= lr * g / (std::sqrt(sum + initial) + epsilon);
  }
};

// The x that minimises rate * (l1 |x| + l2 / 2 x^2) + (x - p)^2 / 2: p, moved towards 0 (Duchi and
// Singer, 2009, section 5).
template <class T>
T proximal(T p, T rate, T l1, T l2) {
  const T left = std::abs(p) - rate * l1;
  const T size = left > 0 ? left : left <= 0 ? T(0) : left;  // NaN stays NaN
  return std::copysign(size, p) / (1 + rate * l2);
}

// Scalars: lr, l1, l2.
template <class T>
struct ProximalStep {
  static constexpr int kValues = 1;
  T lr, l1, l2;
  static constexpr ProximalStep of(const T* const* scalars, std::int64_t) {
    return {*scalars[0], *scalars[1], *scalars[2]};
  }
  void operator()(T& x, T g) const { x = proximal(x - lr * g, lr, l1, l2); }
};

// Scalars: lr, initial, l1, l2.
template <class T>
struct ProximalAdagradStep {
  static constexpr int kValues = 2;
  T lr, initial, l1, l2;
  static constexpr ProximalAdagradStep of(const T* const* scalars, std::int64_t) {
    return {*scalars[0], *scalars[1], *scalars[2], *scalars[3]};
  }
  void operator()(T& x, T& sum, T g) const {
    sum += g * g;
    const T rate = lr / std::sqrt(sum + initial);
    x = proximal(x - rate * g, rate, l1, l2);
  }
};

// Steps in the unit of the variable, from running means of squares. Scalars: lr, rho, epsilon.
template <class T>
struct AdadeltaStep {
  static constexpr int kValues = 3;
  T lr, rho, epsilon;
  static constexpr AdadeltaStep of(const T* const* scalars, std::int64_t) {
    return {*scalars[0], *scalars[1], *scalars[2]};
  }
  void operator()(T& x, T& square, T& moved, T g) const {
    square += (g * g - square) * (1 - rho);
    const T move = std::sqrt(moved + epsilon) / std::sqrt(square + epsilon) * g;
    moved += (move * move - moved) * (1 - rho);
    x -= lr * move;
  }
};

// Steps scaled by a running mean of the squared gradient. Scalars: lr, rho, momentum, epsilon.
template <class T>
struct RmsPropStep {
  static constexpr int kValues = 3;
  T lr, rho, momentum, epsilon;
  static constexpr RmsPropStep of(const T* const* scalars, std::int64_t) {
    return {*scalars[0], *scalars[1], *scalars[2], *scalars[3]};
  }
  void operator()(T& x, T& square, T& velocity, T g) const {
    square += (g * g - square) * (1 - rho);
    velocity = momentum * velocity + g / (std::sqrt(square) + epsilon);
    x -= lr * velocity;
  }
};

// The same by the running variance.
template <class T>
struct CenteredRmsPropStep {
  static constexpr int kValues = 4;
  T lr, rho, momentum, epsilon;
  static constexpr CenteredRmsPropStep of(const T* const* scalars, std::int64_t) {
    return {*scalars[0], *scalars[1], *scalars[2], *scalars[3]};
  }
  void operator()(T& x, T& mean, T& square, T& velocity, T g) const {
    mean += (g - mean) * (1 - rho);
    square += (g * g - square) * (1 - rho);
    // Rounding may make it negative where all gradients are equal.
    const T variance = square - mean * mean;
    velocity = momentum * velocity + g / (std::sqrt(variance < 0 ? T(0) : variance) + epsilon);
    x -= lr * velocity;
  }
};

// Follow the regularised leader. Scalars: lr, initial, l1, l2.
template <class T>
struct FtrlStep {
  static constexpr int kValues = 3;
  T lr, initial, l1, l2;
  static constexpr FtrlStep of(const T* const* scalars, std::int64_t) {
    return {*scalars[0], *scalars[1], *scalars[2], *scalars[3]};
  }
  void operator()(T& x, T& n, T& z, T g) const {
    const T before = std::sqrt(n + initial);
    n += g * g;
    const T after = std::sqrt(n + initial);
    z += g - (after - before) / lr * x;
    const T beyond = std::abs(z) - l1;
    x = beyond <= 0 ? T(0) : -std::copysign(beyond, z) / (after / lr + 2 * l2);
  }
};

// A moving average of what it is given. Scalar: the rate.
template <class T>
struct AverageStep {
  static constexpr int kValues = 1;
  T rate;
  static constexpr AverageStep of(const T* const* scalars, std::int64_t) { return {*scalars[0]}; }
  constexpr void operator()(T& x, T value) const { x += rate * (value - x); }
};

}  // namespace troupe::formula
