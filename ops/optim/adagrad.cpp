#include "ops/optim/adagrad.hpp"

namespace troupe::optim {

Op Adagrad::update(const Parameter& p) const {
  const Variable accum = p.slot("accum");
  if (const auto rows = p.rows())
    return p.write({.op = "ApplySparseAdagrad",
                    .inputs = {p.variable().handle(), accum.handle(), p.rate(lr, "lr"),
                               p.rate(initial, "initial"), p.rate(epsilon, "epsilon"),
                               rows->indices, rows->rows}});
  return p.write(
      {.op = "ApplyAdagrad",
       .inputs = {p.variable().handle(), accum.handle(), p.rate(lr, "lr"),
                  p.rate(initial, "initial"), p.rate(epsilon, "epsilon"), p.gradient()}});
}

}  // namespace troupe::optim
