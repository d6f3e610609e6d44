// Optimizers: from a loss to the node that makes one step of training.
#pragma once

#include <vector>

#include "troupe/ops/api/operators.hpp"
#include "troupe/ops/api/variable.hpp"

namespace troupe::optim {

// All of them are values with the same two functions:
//
//   Op train = optim::Adam{.lr = 1e-3f}.minimize(loss);
//
// `minimize` adds the gradients of `loss`, one update for each parameter that the loss depends on,
// and what state the rule keeps beside it, and returns a node that is done when all updates are
// logged. The gradient of a parameter is summed over all its reads (graph/gradients.hpp); one that
// stands twice in the list, or that two handles share, is updated once. Without `parameters`, those
// are trainable_variables(). Throws Error when the loss depends on none of them, or on one of them
// through an op without gradient or a read behind a write of the same run.
//
// A rate is a number, or a graph value for schedules.

// var -= lr * grad.
struct Sgd {
  Operand lr = 0.01;
  Op minimize(Output loss, Site site = Site::here()) const;
  Op minimize(Output loss, const std::vector<Variable>& parameters, Site site = Site::here()) const;
};

// A velocity: v = momentum * v + grad; var -= lr * v, or Nesterov's look-ahead.
struct Momentum {
  Operand lr = 0.01;
  Operand momentum = 0.9;
  bool nesterov = false;
  Op minimize(Output loss, Site site = Site::here()) const;
  Op minimize(Output loss, const std::vector<Variable>& parameters, Site site = Site::here()) const;
};

// Steps scaled by running moments of the gradient; see ApplyAdam.
struct Adam {
  Operand lr = 1e-3;
  Operand beta1 = 0.9;
  Operand beta2 = 0.999;
  Operand epsilon = 1e-8;
  Op minimize(Output loss, Site site = Site::here()) const;
  Op minimize(Output loss, const std::vector<Variable>& parameters, Site site = Site::here()) const;
};

}  // namespace troupe::optim
