// The Adam optimizer (Kingma and Ba, 2015).
#pragma once

#include "ops/optim/optimizer.hpp"

namespace troupe::optim {

// Steps scaled by running moments of the gradient; see ApplyAdam for the formula.
struct Adam {
  Rate lr = 1e-3;
  Rate beta1 = 0.9;
  Rate beta2 = 0.999;
  Rate epsilon = 1e-8;
  // Of a parameter that a loss depends on by Gather alone: the moments of rows that a step does not
  // gather, and these rows, keep their values. Else they decay, which goes through the whole table.
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
