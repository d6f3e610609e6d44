// The LAMB optimizer (You et al., 2020).
#pragma once

#include "ops/optim/optimizer.hpp"

namespace troupe::optim {

// Adam's step, scaled for each parameter by the ratio of its norm to that of the step, for large
// batches; see ApplyLamb for the formula.
struct Lamb {
  Rate lr = 1e-3;
  Rate beta1 = 0.9;
  Rate beta2 = 0.999;
  Rate epsilon = 1e-6;
  Rate weight_decay = 0.01;

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
