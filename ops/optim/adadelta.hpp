// The Adadelta optimizer (Zeiler, 2012).
#pragma once

#include "ops/optim/optimizer.hpp"

namespace troupe::optim {

// Steps in the unit of the parameter, which need no rate; see ApplyAdadelta for the formula.
struct Adadelta {
  Rate lr = 1.0;
  Rate rho = 0.9;
  Rate epsilon = 1e-6;
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
