// ApplyAdam and ApplyAdamW: steps scaled by running moments of the gradient (Kingma and Ba, 2015),
// the second with a decay of the variable beside them (Loshchilov and Hutter, 2019).
#include <array>

#include "ops/cuda/update.hpp"
#include "ops/formulas/arithmetic.hpp"
#include "ops/formulas/updates.hpp"
#include "ops/kernels/state/update_rows.hpp"

using namespace troupe;

namespace {

// Inputs: var, m, v, step, lr, beta1, beta2, epsilon, grad and the decay of AdamW;
// or that decay, indices and rows. The step count is a variable of the parameter's own, so that the
// rule needs nothing besides its operands: no other write can come between a power of beta and its
// use.
template <class T, bool Decays, bool kRows>
Status adapt(KernelContext& c) {
  TROUPE_TRY(auto var, NewValue<T>::of(c, 0));
  TROUPE_TRY(auto m, NewValue<T>::of(c, 1));
  TROUPE_TRY(auto v, NewValue<T>::of(c, 2));
  TROUPE_TRY(auto count, NewValue<std::int64_t>::of(c, 3));
  std::int64_t& t = *count.bring(0, 1);
  t = formula::Add()(t, std::int64_t{1});
  std::array<const T*, 5> scalars{};
  for (int i = 0; i < 4; ++i) scalars[std::size_t(i)] = parts_of<T>(c.input(4 + i));
  if (Decays) scalars[4] = parts_of<T>(c.input(kRows ? 8 : 9));
  const auto step = formula::AdamStep<T, Decays>::of(scalars.data(), t);
  TROUPE_TRY((update_by<T, kRows>(c, Decays && kRows ? 9 : 8, step, var, m, v)));
  c.set_output(0, var.take());
  c.set_output(1, m.take());
  c.set_output(2, v.take());
  c.set_output(3, count.take());
  return ok_status();
}

template <bool Decays, bool kRows = false>
Status adapt_any(KernelContext& c) {
  return with_parts(c.input(0).dtype(), [&](auto tag) {
    return adapt<typename decltype(tag)::type, Decays, kRows>(c);
  });
}

OpDef adam(std::string name, std::string doc) {
  return {.name = std::move(name),
          .in = {"var: resource", "m: resource", "v: resource", "step: resource of i64", "lr",
                 "beta1", "beta2", "epsilon", "grad"},
          .types = kRealsAndComplex,
          .reduce = {"grad"},
          .combine = Combine::mean,
          .doc = std::move(doc)};
}

}  // namespace

TROUPE_OPS(adam) {
  add_update<kernel<adapt_any<false>>, cuda::adam>(
      r, adam("ApplyAdam",
              "t = step + 1; m += (1 - beta1) (grad - m); v += (1 - beta2) (grad^2 - v); var -= lr "
              "sqrt(1 - beta2^t) / (1 - beta1^t) * m / (sqrt(v) + epsilon); step = t. m and v have "
              "the shape of var, step is an i64 scalar. A gradient whose square overflows (in f32 "
              "above 1.8e19) makes v infinite and all later updates 0. Of a complex variable each "
              "part is a number of its own."));
  OpDef decaying = adam(
      "ApplyAdamW",
      "t = step + 1; m += (1 - beta1) (grad - m); v += (1 - beta2) (grad^2 - v); var -= lr * decay "
      "* var; var -= lr / (1 - beta1^t) * m / (sqrt(v / (1 - beta2^t)) + epsilon); step = t. m and "
      "v have the shape of var, step is an i64 scalar. A gradient whose square overflows (in f32 "
      "above 1.8e19) makes v infinite and all later updates 0.");
  decaying.in.push_back("decay");
  add_update<kernel<adapt_any<true>>, cuda::adam>(r, std::move(decaying));
  OpDef lazy = {.name = "ApplySparseAdam",
                .in = {"var: resource", "m: resource", "v: resource", "step: resource of i64", "lr",
                       "beta1", "beta2", "epsilon"},
                .types = kRealsAndComplex,
                .doc =
                    "ApplyAdam for the places that `rows` are for alone, by their `indices`: m, v "
                    "and var of all others keep their values, although step = t counts for "
                    "them, too. Rows of one place are added up. An index outside is an error."};
  OpDef lazy_decaying = lazy;
  add_rows_update<kernel<adapt_any<false, true>>>(r, std::move(lazy));
  lazy_decaying.name = "ApplySparseAdamW";
  lazy_decaying.in.push_back("decay");
  lazy_decaying.doc =
      "ApplyAdamW for the rows at `indices` only: m, v and var of all other rows keep their values "
      "and do not decay, although step = t counts for them, too. Rows with the same index are "
      "added "
      "up. An index out of range is an error.";
  add_rows_update<kernel<adapt_any<true, true>>>(r, std::move(lazy_decaying));
}
