// Bounds on gradients, between gradients() and apply(). With replicas, on the mean of theirs.
#pragma once

#include "ops/optim/gradients.hpp"

namespace troupe::optim {

// Every element at least `low` and at most `high`.
Gradients clip_by_value(Gradients gradients, double low, double high, Site site = Site::here());

// Each gradient whose Euclidean norm is above `limit` shrunk to that norm.
Gradients clip_by_norm(Gradients gradients, double limit, Site site = Site::here());

// All gradients shrunk by one factor, limit / max(limit, global_norm).
Gradients clip_by_global_norm(Gradients gradients, double limit, Site site = Site::here());

// The Euclidean norm of all gradients as one vector, an f64 scalar, finite whenever it fits f64.
Output global_norm(const Gradients& gradients, Site site = Site::here());

// Where a norm is not finite the clipped gradients are NaN, not 0: nobody should take an overflow
// for the end of training. Errors: `low` above `high`; a limit that is not positive.

}  // namespace troupe::optim
