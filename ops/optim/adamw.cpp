#include "ops/optim/adamw.hpp"

namespace troupe::optim {

Op AdamW::update(const Parameter& p) const {
  const Variable m = p.slot("m"), v = p.slot("v"), step = p.counter("step");
  if (const auto rows = p.lazy_rows(lazy))
    return p.write(
        {.op = "ApplySparseAdamW",
         .inputs = {p.variable().handle(), m.handle(), v.handle(), step.handle(), p.rate(lr, "lr"),
                    p.rate(beta1, "beta1"), p.rate(beta2, "beta2"), p.rate(epsilon, "epsilon"),
                    p.rate(weight_decay, "weight_decay"), rows->indices, rows->rows}});
  return p.write(
      {.op = "ApplyAdamW",
       .inputs = {p.variable().handle(), m.handle(), v.handle(), step.handle(), p.rate(lr, "lr"),
                  p.rate(beta1, "beta1"), p.rate(beta2, "beta2"), p.rate(epsilon, "epsilon"),
                  p.gradient(), p.rate(weight_decay, "weight_decay")}});
}

}  // namespace troupe::optim
