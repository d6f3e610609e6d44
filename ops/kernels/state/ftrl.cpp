// ApplyFtrl: follow the regularised leader, with a rate for each coordinate (McMahan et al., 2013).
#include <cmath>

#include "ops/cuda/update.hpp"
#include "ops/formulas/updates.hpp"
#include "ops/kernels/state/update_rows.hpp"

using namespace troupe;

namespace {

// Inputs: var, accum, linear, lr, initial, l1, l2, and grad or indices and rows.
template <class T, bool kRows>
Status follow(KernelContext& c) {
  TROUPE_TRY(auto var, NewValue<T>::of(c, 0));
  TROUPE_TRY(auto accum, NewValue<T>::of(c, 1));
  TROUPE_TRY(auto linear, NewValue<T>::of(c, 2));
  const formula::FtrlStep<T> step{scalar_operand<T>(c, 3), scalar_operand<T>(c, 4),
                                  scalar_operand<T>(c, 5), scalar_operand<T>(c, 6)};
  TROUPE_TRY((update_by<T, kRows>(c, 7, step, var, accum, linear)));
  c.set_output(0, var.take());
  c.set_output(1, accum.take());
  c.set_output(2, linear.take());
  return ok_status();
}

template <bool kRows>
Status follow_any(KernelContext& c) {
  return c.input(0).dtype() == DType::f32 ? follow<float, kRows>(c) : follow<double, kRows>(c);
}

}  // namespace

TROUPE_OPS(ftrl) {
  add_update<kernel<follow_any<false>>, cuda::ftrl>(
      r, {.name = "ApplyFtrl",
          .in = {"var: resource", "accum: resource", "linear: resource", "lr", "initial", "l1",
                 "l2", "grad"},
          .types = "f32 f64",
          .reduce = {"grad"},
          .combine = Combine::mean,
          .doc = "before = sqrt(accum + initial); accum += grad^2; after = sqrt(accum + initial); "
                 "linear += grad - (after - before) / lr * var; var = 0 where |linear| <= l1, else "
                 "-sign(linear) (|linear| - l1) / (after / lr + 2 l2). lr = 0 gives NaN."});
  add_rows_update<kernel<follow_any<true>>>(
      r,
      {.name = "ApplySparseFtrl",
       .in = {"var: resource", "accum: resource", "linear: resource", "lr", "initial", "l1", "l2"},
       .doc = "ApplyFtrl for the places that `rows` are for alone, by their `indices`: all others "
              "keep their values, although ApplyFtrl would make 0 of those that have seen no "
              "gradient. Rows of one place are added up. An index outside is an error."});
}
