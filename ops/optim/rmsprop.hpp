// The RMSProp optimizer (Tieleman and Hinton, 2012).
#pragma once

#include "ops/optim/optimizer.hpp"

namespace troupe::optim {

// Steps scaled by a running mean of the squared gradient or, with `centered`, by the running
// variance (Graves, 2013); see ApplyRMSProp and ApplyCenteredRMSProp for the formulas.
struct RmsProp {
  Rate lr = 1e-2;
  Rate rho = 0.99;
  Rate momentum = 0.0;
  Rate epsilon = 1e-8;
  bool centered = false;
  // Rows of a table that a step does not gather keep their values, and those of the state.
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
