#include "ops/optim/lamb.hpp"

namespace troupe::optim {

Op Lamb::update(const Parameter& p) const {
  const Variable m = p.slot("m"), v = p.slot("v"), step = p.counter("step");
  return p.write(
      {.op = "ApplyLamb",
       .inputs = {p.variable().handle(), m.handle(), v.handle(), step.handle(), p.rate(lr, "lr"),
                  p.rate(beta1, "beta1"), p.rate(beta2, "beta2"), p.rate(epsilon, "epsilon"),
                  p.gradient(), p.rate(weight_decay, "weight_decay")}});
}

}  // namespace troupe::optim
