// Relu and its relatives. Gradients read the output y where that is enough, so that the forward
// kernel may write over its input.
#include <cmath>

#include "devices/chunks.hpp"
#include "ops/cuda/elementwise.hpp"
#include "ops/formulas/relu.hpp"
#include "ops/kernels/support/grad.hpp"
#include "ops/kernels/support/typed.hpp"
#include "ops/kernels/support/vector_math.hpp"
#include "ops/op.hpp"

using namespace troupe;

namespace {

template <class T>
T expm1_of(T x) {
  if constexpr (std::is_same_v<T, float>)
    return expm1_value(x);
  else
    return std::expm1(x);
}
struct Elu {
  template <class T>
  T operator()(T x) const {
    return x < T(0) ? expm1_of(x) : x;
  }
};
struct Softplus {
  template <class T>
  T operator()(T x) const {
    return (x < T(0) ? T(0) : x) + log1p_value(exp_value(-std::abs(x)));
  }
};
struct SoftplusGrad {
  template <class T>
  T operator()(T dy, T y) const {
    return dy * -expm1_of(-y);
  }
};

template <class F>
struct Forward {
  template <class T>
  static Status run(KernelContext& c) {
    const Tensor& x = c.input(0);
    TROUPE_TRY(Tensor y, c.reuse_or_allocate(0, dtype_of<T>, x.shape()));
    const T* in = x.data<T>();
    T* out = y.mutable_data<T>();
    const Chunks chunks = elementwise_chunks(y.elements());
    c.parallel(chunks.count, [&](std::int64_t i) {
      const Range r = chunks[i];
#pragma omp simd
      for (std::int64_t j = r.begin; j < r.end; ++j) out[j] = F{}(in[j]);
    });
    c.set_output(0, std::move(y));
    return ok_status();
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

// F and G for CPUs, and the same formulas for GPUs.
template <class F, class G, class GpuF, class GpuG>
void add_pair(OpTable& r, std::string name, GradFn grad, GradFn grad_grad, std::string doc) {
  r.add({.name = name,
         .in = {"x"},
         .out = {"y"},
         .types = "f32 f64",
         .shape = same_shape,
         .grad = grad,
         .elementwise = true,
         .doc = std::move(doc)})
      .cpu(float_function<Forward<F>>)
      .cuda(cuda::elementwise<GpuF>);
  r.add({.name = name + "Grad",
         .in = {"dy", "y"},
         .out = {"dx"},
         .types = "f32 f64",
         .shape = same_shape,
         .grad = grad_grad,
         .elementwise = true,
         .doc = "The gradient of " + name + ", given its output y."})
      .cpu(float_function<Backward<G>>)
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
