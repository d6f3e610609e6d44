#include "ops/optim/adagrad.hpp"

namespace troupe::optim {

Op Adagrad::update(const Parameter& p) const {
  const Variable accum = p.slot("accum");
  return p.write(
      {.op = "ApplyAdagrad",
       .inputs = {p.variable().handle(), accum.handle(), p.rate(lr, "lr"),
                  p.rate(initial, "initial"), p.rate(epsilon, "epsilon"), p.gradient()}});
}

}  // namespace troupe::optim
