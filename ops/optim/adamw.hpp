// Adam with decoupled weight decay (Loshchilov and Hutter, 2019).
#pragma once

#include "ops/optim/optimizer.hpp"

namespace troupe::optim {

// See ApplyAdamW for the formula. The decay, lr * weight_decay * var, is not part of the gradient,
// so the moments do not scale it.
struct AdamW {
  Rate lr = 1e-3;
  Rate beta1 = 0.9;
  Rate beta2 = 0.999;
  Rate epsilon = 1e-8;
  Rate weight_decay = 0.01;
  // Rows of a table that a step does not gather, and their moments, keep their values and do not
  // decay.
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
