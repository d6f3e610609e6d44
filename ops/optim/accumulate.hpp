// Large batches in parts.
#pragma once

#include "ops/optim/gradients.hpp"

namespace troupe::optim {

// The mean of the gradients of `runs` runs in a row: a training step of them adds up gradients, and
// changes parameters in every `runs`-th run alone. Where the loss is a mean over the batch, that is
// a step on a batch `runs` times as large.
//
//   optim::Gradients all = optim::accumulate(optim::gradients(loss), 4);
//   Op train = optim::Adam{}.apply(optim::clip_by_global_norm(all, 1.0));
//
// What is done to the result is done to the mean. State: a sum beside each parameter, and a count
// of runs. Throws Error for runs < 1, and for gradients that are accumulated already.
Gradients accumulate(Gradients gradients, std::int64_t runs, Site site = Site::here());

}  // namespace troupe::optim
