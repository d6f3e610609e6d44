#include "ops/optim/proximal_sgd.hpp"

namespace troupe::optim {

Op ProximalSgd::update(const Parameter& p) const {
  return p.write_gradient(
      {.op = "ApplyProximalGradientDescent",
       .inputs = {p.variable().handle(), p.rate(lr, "lr"), p.rate(l1, "l1"), p.rate(l2, "l2")}},
      lazy);
}

}  // namespace troupe::optim
