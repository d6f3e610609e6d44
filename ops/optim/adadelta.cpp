#include "ops/optim/adadelta.hpp"

namespace troupe::optim {

Op Adadelta::update(const Parameter& p) const {
  const Variable square = p.slot("square"), moved = p.slot("moved");
  return p.write_gradient(
      {.op = "ApplyAdadelta",
       .inputs = {p.variable().handle(), square.handle(), moved.handle(), p.rate(lr, "lr"),
                  p.rate(rho, "rho"), p.rate(epsilon, "epsilon")}},
      lazy);
}

}  // namespace troupe::optim
