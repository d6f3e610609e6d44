#include "ops/optim/adam.hpp"

namespace troupe::optim {

Op Adam::update(const Parameter& p) const {
  const Variable m = p.slot("m"), v = p.slot("v"), step = p.counter("step");
  if (lazy)
    if (const auto rows = p.rows())
      return p.write({.op = "ApplySparseAdam",
                      .inputs = {p.variable().handle(), m.handle(), v.handle(), step.handle(),
                                 p.rate(lr, "lr"), p.rate(beta1, "beta1"), p.rate(beta2, "beta2"),
                                 p.rate(epsilon, "epsilon"), rows->indices, rows->rows}});
  return p.write({.op = "ApplyAdam",
                  .inputs = {p.variable().handle(), m.handle(), v.handle(), step.handle(),
                             p.rate(lr, "lr"), p.rate(beta1, "beta1"), p.rate(beta2, "beta2"),
                             p.rate(epsilon, "epsilon"), p.gradient()}});
}

}  // namespace troupe::optim
