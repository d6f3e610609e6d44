// Adagrad with l1 and l2 regularisation (Duchi and Singer, 2009).
#pragma once

#include "ops/optim/optimizer.hpp"

namespace troupe::optim {

// Steps scaled by the sum of all squared gradients, then moved towards 0: parameters of no use
// become exactly 0. See ApplyProximalAdagrad for the formula.
struct ProximalAdagrad {
  Rate lr = 1e-2;
  Rate initial = 0.1;
  Rate l1 = 0.0;
  Rate l2 = 0.0;
  // Rows of a table that a step does not gather keep their values. Else each step moves them
  // towards 0.
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
