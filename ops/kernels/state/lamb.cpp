// ApplyLamb: Adam's step, scaled for each variable by the ratio of its norm to that of the step
// (You et al., 2020, algorithm 2).
#include <numeric>

#include "ops/cuda/update.hpp"
#include "ops/formulas/arithmetic.hpp"
#include "ops/formulas/updates.hpp"
#include "ops/kernels/state/update.hpp"

using namespace troupe;

namespace {

// Inputs: var, m, v, step, lr, beta1, beta2, epsilon, grad, decay.
template <class T>
Status lamb(KernelContext& c) {
  TROUPE_TRY(auto var, NewValue<T>::of(c, 0));
  TROUPE_TRY(auto m, NewValue<T>::of(c, 1));
  TROUPE_TRY(auto v, NewValue<T>::of(c, 2));
  TROUPE_TRY(auto count, NewValue<std::int64_t>::of(c, 3));
  std::int64_t& t = *count.bring(0, 1);
  t = formula::Add()(t, std::int64_t{1});
  const T* const scalars[] = {c.input(4).data<T>(), c.input(5).data<T>(), c.input(6).data<T>(),
                              c.input(7).data<T>(), c.input(9).data<T>()};
  const auto rule = formula::LambStep<T>::of(scalars, t);
  const T* gradient = c.input(8).data<T>();
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
      rule.moments(m_i[k], v_i[k], g[k]);
      const T by = rule.move(x[k], m_i[k], v_i[k]);
      squares += double(x[k]) * double(x[k]);
      moves += double(by) * double(by);
    }
    of_var[std::size_t(i)] = squares;
    of_move[std::size_t(i)] = moves;
  });
  const T rate = rule.rate(*scalars[0], std::accumulate(of_var.begin(), of_var.end(), 0.0),
                           std::accumulate(of_move.begin(), of_move.end(), 0.0));
  Tensor new_m = m.take(), new_v = v.take();
  const T *m_all = new_m.template data<T>(), *v_all = new_v.template data<T>();
  Tensor value = var.take();
  T* x = value.template mutable_data<T>();
  c.parallel(chunks.count, [&](std::int64_t i) {
    const Range r = chunks[i];
    for (std::int64_t k = r.begin; k < r.end; ++k)
      x[k] -= rate * rule.move(x[k], m_all[k], v_all[k]);
  });
  c.set_output(0, std::move(value));
  c.set_output(1, std::move(new_m));
  c.set_output(2, std::move(new_v));
  c.set_output(3, count.take());
  return ok_status();
}

Status lamb_any(KernelContext& c) {
  return c.input(0).dtype() == DType::f32 ? lamb<float>(c) : lamb<double>(c);
}

}  // namespace

TROUPE_OPS(lamb) {
  add_update<kernel<lamb_any>, cuda::lamb>(
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
