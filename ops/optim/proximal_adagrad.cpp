#include "ops/optim/proximal_adagrad.hpp"

namespace troupe::optim {

Op ProximalAdagrad::update(const Parameter& p) const {
  const Variable accum = p.slot("accum");
  return p.write_gradient(
      {.op = "ApplyProximalAdagrad",
       .inputs = {p.variable().handle(), accum.handle(), p.rate(lr, "lr"),
                  p.rate(initial, "initial"), p.rate(l1, "l1"), p.rate(l2, "l2")}},
      lazy);
}

}  // namespace troupe::optim
