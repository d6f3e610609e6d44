// Optimizers: from a loss to the node that makes one step of training.
//
//   Op train = optim::Adam{.lr = 1e-3}.minimize(loss);
//
// is gradients() and `apply` in turn; what changes gradients stands between the two:
//
//   Op train = optim::AdamW{.lr = optim::cosine({.rate = 1e-3, .steps = 10'000})}.apply(
//       optim::clip_by_global_norm(optim::gradients(loss), 1.0));
//
// The node that `apply` returns is done when all updates are logged; they take effect when the run
// commits.
#pragma once

#include "troupe/ops/optim/accumulate.hpp"
#include "troupe/ops/optim/adam.hpp"
#include "troupe/ops/optim/adamw.hpp"
#include "troupe/ops/optim/clip.hpp"
#include "troupe/ops/optim/gradients.hpp"
#include "troupe/ops/optim/momentum.hpp"
#include "troupe/ops/optim/optimizer.hpp"
#include "troupe/ops/optim/schedule.hpp"
#include "troupe/ops/optim/sgd.hpp"
