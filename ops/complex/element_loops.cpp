#include "ops/complex/element_loops.hpp"

#include <complex>
#include <limits>
#include <string>

namespace troupe {
namespace {

struct Add {
  auto operator()(auto a, auto b) const { return a + b; }
};
struct Sub {
  auto operator()(auto a, auto b) const { return a - b; }
};
struct Mul {
  auto operator()(auto a, auto b) const { return a * b; }
};
struct Div {
  auto operator()(auto a, auto b) const { return a / b; }
};
struct Pow {
  template <class Z>
  Z operator()(Z a, Z b) const {
    using R = typename Z::value_type;
    if (b == Z()) return Z(1);
    if (a != Z()) return std::pow(a, b);
    constexpr R nan = std::numeric_limits<R>::quiet_NaN();
    return b.real() > 0 ? Z() : Z(nan, nan);
  }
};
struct PowGradBase {
  template <class Z>
  Z operator()(Z dy, Z a, Z b) const {
    return b == Z() ? Z() : dy * b * Pow()(a, b - Z(1));
  }
};
struct PowGradExponent {
  template <class Z>
  Z operator()(Z dy, Z y, Z a) const {
    return a == Z() ? Z() : dy * y * std::log(a);
  }
};
struct Equal {
  bool operator()(auto a, auto b) const { return a == b; }
};
struct NotEqual {
  bool operator()(auto a, auto b) const { return a != b; }
};
struct NonZero {
  template <class Z>
  bool operator()(Z z) const {
    return z != Z();
  }
};

struct Neg {
  auto operator()(auto z) const { return -z; }
};
struct Square {
  auto operator()(auto z) const { return z * z; }
};
struct Reciprocal {
  template <class Z>
  Z operator()(Z z) const {
    return Z(1) / z;
  }
};
struct ReciprocalGrad {
  auto operator()(auto dy, auto y) const { return -dy * (y * y); }
};
struct Sqrt {
  auto operator()(auto z) const { return std::sqrt(z); }
};
struct SqrtGrad {
  auto operator()(auto dy, auto y) const { return dy / (y + y); }
};
struct Exp {
  auto operator()(auto z) const { return std::exp(z); }
};
struct Log {
  auto operator()(auto z) const { return std::log(z); }
};
struct Sin {
  auto operator()(auto z) const { return std::sin(z); }
};
struct Cos {
  auto operator()(auto z) const { return std::cos(z); }
};
struct Tan {
  auto operator()(auto z) const { return std::tan(z); }
};
struct Sinh {
  auto operator()(auto z) const { return std::sinh(z); }
};
struct Cosh {
  auto operator()(auto z) const { return std::cosh(z); }
};
struct Tanh {
  auto operator()(auto z) const { return std::tanh(z); }
};
struct TanhGrad {
  template <class Z>
  Z operator()(Z dy, Z y) const {
    return dy * (Z(1) - y * y);
  }
};
struct ZerosLike {
  template <class Z>
  Z operator()(Z) const {
    return Z();
  }
};
struct OnesLike {
  template <class Z>
  Z operator()(Z) const {
    return Z(1);
  }
};

struct Complex {
  template <class R>
  std::complex<R> operator()(R re, R im) const {
    return {re, im};
  }
};
struct Widen {
  template <class R>
  std::complex<R> operator()(R re) const {
    return {re, R(0)};
  }
};
struct Convert {
  auto operator()(std::complex<float> z) const { return std::complex<double>(z); }
  auto operator()(std::complex<double> z) const { return std::complex<float>(z); }
};
struct Conj {
  auto operator()(auto z) const { return std::conj(z); }
};
struct Real {
  auto operator()(auto z) const { return z.real(); }
};
struct Imag {
  auto operator()(auto z) const { return z.imag(); }
};
struct Angle {
  auto operator()(auto z) const { return std::arg(z); }
};
struct ComplexAbs {
  auto operator()(auto z) const { return std::abs(z); }
};

template <class F, class T>
void loop(const ElementFunction&, const ElementRow& row) {
  const T* a = static_cast<const T*>(row.in[0]);
  const std::int64_t n = row.n;
  if constexpr (arity_of<F, T> == 1) {
    auto* o = static_cast<decltype(F()(*a))*>(row.out);
    for (std::int64_t i = 0; i < n; ++i) o[i] = F()(a[i]);
  } else {
    const T* b = static_cast<const T*>(row.in[1]);
    const std::int64_t s0 = row.steps[0], s1 = row.steps[1];
    if constexpr (arity_of<F, T> == 2) {
      auto* o = static_cast<decltype(F()(*a, *b))*>(row.out);
      for (std::int64_t i = 0; i < n; ++i) o[i] = F()(a[i * s0], b[i * s1]);
    } else {
      const T* c = static_cast<const T*>(row.in[2]);
      const std::int64_t s2 = row.steps[2];
      auto* o = static_cast<decltype(F()(*a, *b, *c))*>(row.out);
      for (std::int64_t i = 0; i < n; ++i) o[i] = F()(a[i * s0], b[i * s1], c[i * s2]);
    }
  }
}

template <class F, class T>
constexpr ComplexLoop loop_of() {
  constexpr int inputs = arity_of<F, T>;
  using R = typename decltype([] {
    if constexpr (inputs == 1)
      return std::invoke_result<F, T>();
    else if constexpr (inputs == 2)
      return std::invoke_result<F, T, T>();
    else
      return std::invoke_result<F, T, T, T>();
  }())::type;
  return {inputs, {dtype_of<T>, dtype_of<R>, loop<F, T>}};
}

// An op on numbers of two sizes: c64 and c128, or f32 and f64.
struct Entry {
  std::string_view op;
  ComplexLoop loops[2];
};
template <class F>
constexpr Entry of_complex(std::string_view op) {
  return {op, {loop_of<F, std::complex<float>>(), loop_of<F, std::complex<double>>()}};
}
template <class F>
constexpr Entry of_reals(std::string_view op) {
  return {op, {loop_of<F, float>(), loop_of<F, double>()}};
}

constexpr Entry kLoops[] = {
    of_complex<Add>("Add"),
    of_complex<Sub>("Sub"),
    of_complex<Mul>("Mul"),
    of_complex<Div>("Div"),
    of_complex<Pow>("Pow"),
    of_complex<PowGradBase>("PowGradBase"),
    of_complex<PowGradExponent>("PowGradExponent"),
    of_complex<Equal>("Equal"),
    of_complex<NotEqual>("NotEqual"),
    of_complex<NonZero>("NonZero"),
    of_complex<Neg>("Neg"),
    of_complex<Square>("Square"),
    of_complex<Reciprocal>("Reciprocal"),
    of_complex<ReciprocalGrad>("ReciprocalGrad"),
    of_complex<Sqrt>("Sqrt"),
    of_complex<SqrtGrad>("SqrtGrad"),
    of_complex<Exp>("Exp"),
    of_complex<Log>("Log"),
    of_complex<Sin>("Sin"),
    of_complex<Cos>("Cos"),
    of_complex<Tan>("Tan"),
    of_complex<Sinh>("Sinh"),
    of_complex<Cosh>("Cosh"),
    of_complex<Tanh>("Tanh"),
    of_complex<TanhGrad>("TanhGrad"),
    of_complex<ZerosLike>("ZerosLike"),
    of_complex<OnesLike>("OnesLike"),
    of_reals<Complex>("Complex"),
    of_reals<Widen>("Widen"),
    of_complex<Convert>("Convert"),
    of_complex<Conj>("Conj"),
    of_complex<Real>("Real"),
    of_complex<Imag>("Imag"),
    of_complex<Angle>("Angle"),
    of_complex<ComplexAbs>("ComplexAbs"),
};

}  // namespace

Expected<ComplexLoop> complex_loop(std::string_view op, DType dtype) {
  for (const Entry& entry : kLoops)
    if (entry.op == op)
      for (const ComplexLoop& loop : entry.loops)
        if (loop.types.in == dtype) return loop;
  return unimplemented(std::string(op) + " has no kernel for " + std::string(dtype_name(dtype)));
}

}  // namespace troupe
