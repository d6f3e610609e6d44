#include "ops/optim/sgd.hpp"

namespace troupe::optim {

Op Sgd::update(const Parameter& p) const {
  return p.write(
      {.op = "ApplyGradientDescent",
       .inputs = {p.variable().handle(), p.rate(lr, "lr"), p.gradient_with_decay(weight_decay)}});
}

}  // namespace troupe::optim
