// Relu and its relatives. Gradients read the output y where that is enough, so that the forward
// kernel may write over its input.
#include <cmath>

#include "devices/chunks.hpp"
#include "ops/cuda/elementwise.hpp"
#include "ops/formulas/relu.hpp"
#include "ops/kernels/support/float_function.hpp"
#include "ops/kernels/support/grad.hpp"
#include "ops/kernels/support/one_shape.hpp"
#include "ops/kernels/support/packets.hpp"
#include "ops/kernels/support/through_float.hpp"
#include "ops/op.hpp"

using namespace troupe;

namespace {

template <class T>
T expm1_of(T x) {
  if constexpr (std::is_same_v<T, double>)
    return std::expm1(x);
  else
    return expm1_value(x);
}
struct Elu : FloatPackets {
  auto operator()(auto x) const { return choose(x < decltype(x){}, expm1_of(x), x); }
};
struct Softplus {
  template <class T>
  static constexpr bool packets = true;
  auto operator()(auto x) const {
    using V = decltype(x);
    return choose(x < V{}, V{}, x) + log1p_value(exp_value(-magnitude(x)));
  }
};
struct SoftplusGrad {
  template <class T>
  T operator()(T dy, T y) const {
    return dy * -expm1_of(-y);
  }
};

struct Selu : FloatPackets {
  auto operator()(auto x) const {
    using V = decltype(x);
    using T = ElementOf<V>;
    if constexpr (std::is_same_v<V, double>) {
      return formula::Selu{}(x);
    } else {
      const auto positive = x > V{};
      return choose(positive, x * T(formula::kSeluScale),
                    expm1_value(choose(positive, V{}, x)) * T(formula::kSeluBelow));
    }
  }
};
struct SeluGrad {
  template <class T>
  static constexpr bool packets = true;
  template <class V>
  V operator()(V dy, V x) const {
    using T = ElementOf<V>;
    const auto positive = x > V{};
    // Where it is not wanted, e^x must not overflow.
    const V below = exp_value(choose(positive, V{}, x)) * T(formula::kSeluBelow);
    return dy * choose(positive, splat<V>(T(formula::kSeluScale)), below);
  }
};

template <class F>
struct Backward {
  template <class T>
  static Status run(KernelContext& c) {
    const Tensor &dy = c.input(0), &y = c.input(1);
    if (!(dy.shape() == y.shape()))
      return invalid_argument("dy is " + dy.shape().text() + ", y is " + y.shape().text());
    TROUPE_TRY(Tensor dx, c.reuse_or_allocate(0, dtype_of<T>, dy.shape()));
    const T *slope = dy.data<T>(), *at = y.data<T>();
    T* out = dx.mutable_data<T>();
    const Chunks chunks = elementwise_chunks(dx.elements());
    c.parallel(chunks.count, [&](std::int64_t i) {
      const Range r = chunks[i];
#pragma omp simd
      for (std::int64_t j = r.begin; j < r.end; ++j) out[j] = F{}(slope[j], at[j]);
    });
    c.set_output(0, std::move(dx));
    return ok_status();
  }
};

template <const char* Grad>
std::vector<Output> through(GradContext& c) {
  return {c.g.add(Grad, {c.dy[0], c.y[0]})};
}
constexpr char kReluGrad[] = "ReluGrad", kRelu6Grad[] = "Relu6Grad", kEluGrad[] = "EluGrad",
               kSoftplusGrad[] = "SoftplusGrad";

// The slopes of Relu and Relu6 are steps: no gradient flows to y, and dy is masked again.
template <const char* Grad>
std::vector<Output> step_grad(GradContext& c) {
  return {c.g.add(Grad, {c.dy[0], c.x[1]}), Output()};
}

// z = dy (y + 1) where y < 0, else dy
std::vector<Output> elu_grad_grad(GradContext& c) {
  const Output d = c.dy[0], dy = c.x[0], y = c.x[1], zero = scalar_like(y, 0);
  return {c.g.add("EluGrad", {d, y}), where(c.g.add("Less", {y, zero}), multiply(d, dy), zero)};
}
// z = dy (1 - e^-y)
std::vector<Output> softplus_grad_grad(GradContext& c) {
  const Output d = c.dy[0], dy = c.x[0], y = c.x[1];
  return {c.g.add("SoftplusGrad", {d, y}), multiply(multiply(d, dy), c.g.add("Exp", {negate(y)}))};
}

// z = dy where x > 0, else dy slope
std::vector<Output> leaky_relu_grad(GradContext& c) {
  const Output dy = c.dy[0], x = c.x[0], slope = c.x[1], zero = scalar_like(x, 0);
  const Output below = where(c.g.add("Greater", {x, zero}), zero, multiply(dy, x));
  return {unbroadcast(c.g.add("LeakyReluGrad", {dy, x, slope}), x, slope),
          unbroadcast(below, slope, x)};
}
std::vector<Output> leaky_relu_grad_grad(GradContext& c) {
  const Output d = c.dy[0], dy = c.x[0], x = c.x[1], slope = c.x[2], zero = scalar_like(x, 0);
  const Output below = where(c.g.add("Greater", {x, zero}), zero, multiply(d, dy));
  return {c.g.add("LeakyReluGrad", {d, x, slope}), Output(), unbroadcast(below, slope, dy)};
}

std::vector<Output> selu_grad(GradContext& c) { return {c.g.add("SeluGrad", {c.dy[0], c.x[0]})}; }
// z = dy 1.7581 e^x where x <= 0: its slope for x is itself.
std::vector<Output> selu_grad_grad(GradContext& c) {
  const Output d = c.dy[0], z = c.y[0], x = c.x[1], zero = scalar_like(x, 0);
  return {c.g.add("SeluGrad", {d, x}), where(c.g.add("Greater", {x, zero}), zero, multiply(d, z))};
}

// F and G for CPUs, and the same formulas for GPUs.
template <class F, class G, class GpuF, class GpuG>
void add_pair(OpTable& r, std::string name, GradFn grad, GradFn grad_grad, std::string doc) {
  r.add(float_function(name, grad, std::move(doc)))
      .cpu(elementwise<F>)
      .cuda(cuda::elementwise<GpuF>);
  r.add(float_gradient(name + "Grad", "y", grad_grad,
                       "The gradient of " + name + ", given its output y."))
      .cpu(through_float_function<Backward<G>>)
      .cuda(cuda::elementwise<GpuG, cuda::Shapes::equal>);
}
template <class F, class G>
void add_pair(OpTable& r, std::string name, GradFn grad, GradFn grad_grad, std::string doc) {
  add_pair<F, G, F, G>(r, std::move(name), grad, grad_grad, std::move(doc));
}

}  // namespace

TROUPE_OPS(relu) {
  add_pair<formula::Relu, formula::ReluGrad>(r, "Relu", through<kReluGrad>, step_grad<kReluGrad>,
                                             "y = max(x, 0). The gradient at 0 is 0.");
  add_pair<formula::Relu6, formula::Relu6Grad>(
      r, "Relu6", through<kRelu6Grad>, step_grad<kRelu6Grad>,
      "y = min(max(x, 0), 6). The gradient at 0 and at 6 is 0.");
  add_pair<Elu, formula::EluGrad, formula::Elu, formula::EluGrad>(
      r, "Elu", through<kEluGrad>, elu_grad_grad, "y = x if x >= 0, else e^x - 1.");
  add_pair<Softplus, SoftplusGrad, formula::Softplus, formula::SoftplusGrad>(
      r, "Softplus", through<kSoftplusGrad>, softplus_grad_grad, "y = log(1 + e^x).");
}

TROUPE_OPS(leaky_relu) {
  r.add({.name = "LeakyRelu",
         .in = {"x", "slope"},
         .out = {"y"},
         .types = kFloats,
         .shape = broadcast_shape,
         .grad = leaky_relu_grad,
         .elementwise = true,
         .doc = "y = x if x > 0, else slope * x. The inputs broadcast: with a slope for each "
                "channel, which may be learned, this is PReLU."})
      .cpu(elementwise<formula::LeakyRelu>)
      .cuda(cuda::elementwise<formula::LeakyRelu>);
  r.add({.name = "LeakyReluGrad",
         .in = {"dy", "x", "slope"},
         .out = {"dx"},
         .types = kFloats,
         .shape = same_shape,
         .grad = leaky_relu_grad_grad,
         .elementwise = true,
         .doc = "dx = dy if x > 0, else slope * dy, in the broadcast shape of x and slope (dy's)."})
      .cpu(in_first_shape<elementwise<formula::LeakyReluGrad>>)
      .cuda(cuda::elementwise<formula::LeakyReluGrad, cuda::Shapes::to_first>);
}

TROUPE_OPS(selu) {
  OpDef selu = float_function("Selu", selu_grad,
                              "y = 1.0507 x if x > 0, else 1.0507 * 1.6733 (e^x - 1) (Klambauer "
                              "et al., 2017).");
  r.add(std::move(selu)).cpu(elementwise<Selu>).cuda(cuda::elementwise<formula::Selu>);
  r.add(float_gradient("SeluGrad", "x", selu_grad_grad, "The gradient of Selu, given its input."))
      .cpu(of_one_shape<elementwise<SeluGrad>>)
      .cuda(cuda::elementwise<formula::SeluGrad, cuda::Shapes::equal>);
}
