#include "ops/optim/adam.hpp"

namespace troupe::optim {

Op Adam::update(const Parameter& p) const {
  const Variable m = p.slot("m"), v = p.slot("v"), step = p.counter("step");
  return p.write_gradient(
      {.op = "ApplyAdam",
       .inputs = {p.variable().handle(), m.handle(), v.handle(), step.handle(), p.rate(lr, "lr"),
                  p.rate(beta1, "beta1"), p.rate(beta2, "beta2"), p.rate(epsilon, "epsilon")}},
      lazy);
}

}  // namespace troupe::optim
