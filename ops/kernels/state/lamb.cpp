// ApplyLamb: Adam's step, scaled for each variable by the ratio of its norm to that of the step
// (You et al., 2020, algorithm 2).
#include <cmath>
#include <numeric>

#include "ops/kernels/state/update.hpp"

using namespace troupe;

namespace {

// Inputs: var, m, v, step, lr, beta1, beta2, epsilon, grad, decay.
template <class T>
Status adapt(KernelContext& c) {
  TROUPE_TRY(auto var, NewValue<T>::of(c, 0));
  TROUPE_TRY(auto m, NewValue<T>::of(c, 1));
  TROUPE_TRY(auto v, NewValue<T>::of(c, 2));
  TROUPE_TRY(auto count, NewValue<std::int64_t>::of(c, 3));
  const std::int64_t t = *count.bring(0, 1) += 1;
  const T lr = scalar_operand<T>(c, 4), beta1 = scalar_operand<T>(c, 5),
          beta2 = scalar_operand<T>(c, 6), epsilon = scalar_operand<T>(c, 7),
          decay = scalar_operand<T>(c, 9);
  const T first = T(1 / (1 - std::pow(double(beta1), double(t))));
  const T second = T(1 / (1 - std::pow(double(beta2), double(t))));
  const T* gradient = c.input(8).data<T>();
  const auto move = [=](T x, T m_i, T v_i) {
    return first * m_i / (std::sqrt(second * v_i) + epsilon) + decay * x;
  };
  // The norms are sums over chunks, whose bounds depend on the size alone, in their order.
  const Chunks chunks = elementwise_chunks(var.elements());
  std::vector<double> of_var(std::size_t(chunks.count)), of_move(std::size_t(chunks.count));
  c.parallel(chunks.count, [&](std::int64_t i) {
    const Range r = chunks[i];
    T *x = var.bring(r.begin, r.end), *m_i = m.bring(r.begin, r.end),
      *v_i = v.bring(r.begin, r.end);
    const T* g = gradient + r.begin;
    double squares = 0, moves = 0;
    for (std::int64_t k = 0; k < r.size(); ++k) {
      m_i[k] += (g[k] - m_i[k]) * (1 - beta1);
      v_i[k] += (g[k] * g[k] - v_i[k]) * (1 - beta2);
      const T by = move(x[k], m_i[k], v_i[k]);
      squares += double(x[k]) * double(x[k]);
      moves += double(by) * double(by);
    }
    of_var[std::size_t(i)] = squares;
    of_move[std::size_t(i)] = moves;
  });
  const double norm = std::sqrt(std::accumulate(of_var.begin(), of_var.end(), 0.0));
  const double length = std::sqrt(std::accumulate(of_move.begin(), of_move.end(), 0.0));
  const T rate = norm > 0 && length > 0 ? T(double(lr) * (norm / length)) : lr;
  Tensor new_m = m.take(), new_v = v.take();
  const T *m_all = new_m.template data<T>(), *v_all = new_v.template data<T>();
  Tensor value = var.take();
  T* x = value.template mutable_data<T>();
  c.parallel(chunks.count, [&](std::int64_t i) {
    const Range r = chunks[i];
    for (std::int64_t k = r.begin; k < r.end; ++k) x[k] -= rate * move(x[k], m_all[k], v_all[k]);
  });
  c.set_output(0, std::move(value));
  c.set_output(1, std::move(new_m));
  c.set_output(2, std::move(new_v));
  c.set_output(3, count.take());
  return ok_status();
}

Status adapt_any(KernelContext& c) {
  return c.input(0).dtype() == DType::f32 ? adapt<float>(c) : adapt<double>(c);
}

}  // namespace

TROUPE_OPS(lamb) {
  add_update<kernel<adapt_any>>(
      r, {.name = "ApplyLamb",
          .in = {"var: resource", "m: resource", "v: resource", "step: resource of i64", "lr",
                 "beta1", "beta2", "epsilon", "grad", "decay"},
          .types = "f32 f64",
          .reduce = {"grad"},
          .combine = Combine::mean,
          .doc = "t = step + 1; m += (1 - beta1) (grad - m); v += (1 - beta2) (grad^2 - v); move = "
                 "m / (1 - beta1^t) / (sqrt(v / (1 - beta2^t)) + epsilon) + decay * var; var -= lr "
                 "* |var| / |move| * move, with the Euclidean norms of the whole variable; if one "
                 "of them is 0, their ratio is 1. step = t."});
}
