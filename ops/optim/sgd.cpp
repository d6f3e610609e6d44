#include "ops/optim/sgd.hpp"

namespace troupe::optim {

Op Sgd::update(const Parameter& p) const {
  if (const auto rows = weight_decay == 0 ? p.rows() : std::nullopt)
    return p.write(
        {.op = "ApplySparseGradientDescent",
         .inputs = {p.variable().handle(), p.rate(lr, "lr"), rows->indices, rows->rows}});
  return p.write(
      {.op = "ApplyGradientDescent",
       .inputs = {p.variable().handle(), p.rate(lr, "lr"), p.gradient_with_decay(weight_decay)}});
}

}  // namespace troupe::optim
