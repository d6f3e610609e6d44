#include "ops/optim/ftrl.hpp"

namespace troupe::optim {

Op Ftrl::update(const Parameter& p) const {
  const Variable accum = p.slot("accum"), linear = p.slot("linear");
  return p.write_gradient(
      {.op = "ApplyFtrl",
       .inputs = {p.variable().handle(), accum.handle(), linear.handle(), p.rate(lr, "lr"),
                  p.rate(initial, "initial"), p.rate(l1, "l1"), p.rate(l2, "l2")}},
      lazy);
}

}  // namespace troupe::optim
