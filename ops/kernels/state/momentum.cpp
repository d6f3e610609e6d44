// ApplyMomentum: gradient descent with a velocity, plain or Nesterov's.
#include "ops/cuda/update.hpp"
#include "ops/formulas/updates.hpp"
#include "ops/kernels/state/update_rows.hpp"

using namespace troupe;

namespace {

// Inputs: var, accum, lr, and grad and momentum, or momentum, indices and rows.
template <class T, bool Nesterov, bool kRows>
Status push(KernelContext& c) {
  TROUPE_TRY(auto var, NewValue<T>::of(c, 0));
  TROUPE_TRY(auto accum, NewValue<T>::of(c, 1));
  const formula::MomentumStep<T, Nesterov> step{scalar_operand<T>(c, 2),
                                                scalar_operand<T>(c, kRows ? 3 : 4)};
  TROUPE_TRY((update_by<T, kRows>(c, kRows ? 4 : 3, step, var, accum)));
  c.set_output(0, var.take());
  c.set_output(1, accum.take());
  return ok_status();
}

template <bool Nesterov, bool kRows>
Status push_any(KernelContext& c) {
  return with_parts(c.input(0).dtype(), [&](auto tag) {
    return push<typename decltype(tag)::type, Nesterov, kRows>(c);
  });
}

template <bool kRows>
Expected<std::unique_ptr<Kernel>> make_momentum(const KernelSpec& spec) {
  return spec.bool_attr("nesterov") ? kernel<push_any<true, kRows>>(spec)
                                    : kernel<push_any<false, kRows>>(spec);
}

}  // namespace

TROUPE_OPS(momentum) {
  add_update<make_momentum<false>, cuda::momentum>(
      r, {.name = "ApplyMomentum",
          .in = {"var: resource", "accum: resource", "lr", "grad", "momentum"},
          .types = kRealsAndComplex,
          .attrs = {"nesterov: bool = false"},
          .reduce = {"grad"},
          .combine = Combine::mean,
          .doc = "accum = momentum * accum + grad; var -= lr * accum, or with `nesterov` var -= lr "
                 "* (grad + momentum * accum)."});
  add_rows_update<make_momentum<true>>(
      r,
      {.name = "ApplySparseMomentum",
       .in = {"var: resource", "accum: resource", "lr", "momentum"},
       .types = kRealsAndComplex,
       .attrs = {"nesterov: bool = false"},
       .doc = "ApplyMomentum for the places that `rows` are for alone, by their `indices`: accum "
              "and var of all others keep their values. Rows of one place are added up. An index "
              "outside is an error."});
}
