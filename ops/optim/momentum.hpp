// Gradient descent with momentum.
#pragma once

#include "ops/optim/optimizer.hpp"

namespace troupe::optim {

// velocity = momentum * velocity + grad; var -= lr * velocity, or with nesterov
// var -= lr * (grad + momentum * velocity). The gradient includes weight_decay * var.
struct Momentum {
  Rate lr = 0.01;
  Rate momentum = 0.9;
  bool nesterov = false;
  double weight_decay = 0;
  // Rows of a table that a step does not gather, and their velocities, keep their values. Refused
  // together with weight_decay, which changes all rows.
  bool lazy = false;

  Op update(const Parameter& p) const;

  Op apply(const Gradients& gradients, Site site = Site::here()) const {
    return apply_rule(*this, gradients, site);
  }
  Op minimize(Output loss, Site site = Site::here()) const {
    return apply(optim::gradients(loss, site), site);
  }
  Op minimize(Output loss, const std::vector<Variable>& parameters,
              Site site = Site::here()) const {
    return apply(optim::gradients(loss, parameters, site), site);
  }
};

}  // namespace troupe::optim
