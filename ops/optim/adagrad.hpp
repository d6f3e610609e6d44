// The Adagrad optimizer (Duchi, Hazan and Singer, 2011).
#pragma once

#include "ops/optim/optimizer.hpp"

namespace troupe::optim {

// Steps scaled by the sum of all squared gradients; see ApplyAdagrad for the formula. TensorFlow's
// form has initial 0.1 and epsilon 1e-7, PyTorch's is the default.
struct Adagrad {
  Rate lr = 1e-2;
  Rate initial = 0.0;
  Rate epsilon = 1e-10;

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
