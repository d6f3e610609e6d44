// Gradient accumulation over several runs.
#pragma once

#include "ops/optim/gradients.hpp"

namespace troupe::optim {

// The mean of the gradients of `runs` consecutive runs. A training step of the result adds up
// gradients in every run and changes parameters only in every `runs`-th. If the loss is a mean over
// the batch, this equals a step on a batch `runs` times as large.
//
//   optim::Gradients all = optim::accumulate(optim::gradients(loss), 4);
//   Op train = optim::Adam{}.apply(optim::clip_by_global_norm(all, 1.0));
//
// Functions of the result, such as clipping, apply to the mean. If the gradients have a condition,
// such as that of LossScale, it has to be true in all of the `runs` runs: otherwise their sums are
// dropped. Keeps as state a sum for each parameter, and the number of runs. Throws Error if runs <
// 1, or if the gradients are already accumulated.
Gradients accumulate(Gradients gradients, std::int64_t runs, Site site = Site::here());

}  // namespace troupe::optim
