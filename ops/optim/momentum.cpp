#include "ops/optim/momentum.hpp"

namespace troupe::optim {

Op Momentum::update(const Parameter& p) const {
  if (lazy && weight_decay != 0)
    throw Error(invalid_argument("Momentum: weight_decay changes all rows, lazy leaves those alone "
                                 "that a step does not gather; choose one")
                    .at(p.site()));
  const Variable velocity = p.slot("velocity");
  if (const auto rows = p.lazy_rows(lazy))
    return p.write({.op = "ApplySparseMomentum",
                    .inputs = {p.variable().handle(), velocity.handle(), p.rate(lr, "lr"),
                               p.rate(momentum, "momentum"), rows->indices, rows->rows},
                    .attrs = {{"nesterov", nesterov}}});
  return p.write({.op = "ApplyMomentum",
                  .inputs = {p.variable().handle(), velocity.handle(), p.rate(lr, "lr"),
                             p.gradient_with_decay(weight_decay), p.rate(momentum, "momentum")},
                  .attrs = {{"nesterov", nesterov}}});
}

}  // namespace troupe::optim
