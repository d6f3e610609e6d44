// Optimizers: from a loss to the node that makes one step of training.
//
//   Op train = optim::Adam{.lr = 1e-3}.minimize(loss);
//
// `minimize` is gradients() and `apply`; between the two, gradients are values like any others. A
// rate is a number or a graph value. The node that `apply` returns is done when all updates are
// logged; they take effect when the run commits.
#pragma once

#include "troupe/ops/optim/adam.hpp"
#include "troupe/ops/optim/momentum.hpp"
#include "troupe/ops/optim/optimizer.hpp"
#include "troupe/ops/optim/sgd.hpp"
