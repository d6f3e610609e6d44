#include "ops/optim/momentum.hpp"

namespace troupe::optim {

Op Momentum::update(const Parameter& p) const {
  const Variable velocity = p.slot("velocity");
  return p.write({.op = "ApplyMomentum",
                  .inputs = {p.variable().handle(), velocity.handle(), p.rate(lr, "lr"),
                             p.gradient_with_decay(weight_decay), p.rate(momentum, "momentum")},
                  .attrs = {{"nesterov", nesterov}}});
}

}  // namespace troupe::optim
