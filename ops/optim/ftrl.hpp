// Follow the regularised leader (McMahan et al., 2013).
#pragma once

#include "ops/optim/optimizer.hpp"

namespace troupe::optim {

// For wide, sparse linear models: parameters of no use become exactly 0. See ApplyFtrl for the
// formula.
struct Ftrl {
  Rate lr = 1e-1;  // above 0
  Rate initial = 0.1;
  Rate l1 = 0.0;
  Rate l2 = 0.0;
  // Rows of a table that a step does not gather keep their values, and those of the state. Else the
  // first step makes 0 of them, whatever they were.
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
