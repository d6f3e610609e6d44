// Plain gradient descent.
#pragma once

#include "ops/optim/optimizer.hpp"

namespace troupe::optim {

// var -= lr * grad. The gradient includes weight_decay * var.
struct Sgd {
  Rate lr = 0.01;
  double weight_decay = 0;

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
