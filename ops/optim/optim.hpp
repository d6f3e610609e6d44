// Optimizers: from a loss to a node that performs one training step.
//
//   Op train = optim::Adam{.lr = 1e-3}.minimize(loss);
//
// minimize() is gradients() followed by apply(). To change gradients, call both:
//
//   Op train = optim::AdamW{.lr = optim::cosine({.rate = 1e-3, .steps = 10'000})}.apply(
//       optim::clip_by_global_norm(optim::gradients(loss), 1.0));
//
// The node completes when all updates are logged. They take effect when the run commits.
#pragma once

#include "ops/optim/accumulate.hpp"
#include "ops/optim/adadelta.hpp"
#include "ops/optim/adagrad.hpp"
#include "ops/optim/adam.hpp"
#include "ops/optim/adamw.hpp"
#include "ops/optim/clip.hpp"
#include "ops/optim/ftrl.hpp"
#include "ops/optim/gradients.hpp"
#include "ops/optim/lamb.hpp"
#include "ops/optim/loss_scale.hpp"
#include "ops/optim/momentum.hpp"
#include "ops/optim/optimizer.hpp"
#include "ops/optim/proximal_adagrad.hpp"
#include "ops/optim/proximal_sgd.hpp"
#include "ops/optim/rmsprop.hpp"
#include "ops/optim/schedule.hpp"
#include "ops/optim/sgd.hpp"
