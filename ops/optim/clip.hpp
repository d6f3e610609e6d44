// Gradient clipping, between gradients() and apply(). With replicas it applies to their mean.
#pragma once

#include "ops/optim/gradients.hpp"

namespace troupe::optim {

// Clips every element to [low, high].
Gradients clip_by_value(Gradients gradients, double low, double high, Site site = Site::here());

// Scales each gradient whose Euclidean norm exceeds `limit` to that norm.
Gradients clip_by_norm(Gradients gradients, double limit, Site site = Site::here());

// Scales all gradients by limit / max(limit, global_norm).
Gradients clip_by_global_norm(Gradients gradients, double limit, Site site = Site::here());

// The Euclidean norm of all gradients taken as one vector: a scalar f64, finite if it fits f64.
Output global_norm(const Gradients& gradients, Site site = Site::here());

// If a norm is not finite, the clipped gradients are NaN rather than 0, so that an overflow is not
// mistaken for convergence. Throws Error if low > high, or unless limit > 0.

}  // namespace troupe::optim
