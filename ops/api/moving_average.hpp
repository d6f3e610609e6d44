// Moving averages over training steps.
#pragma once

#include <vector>

#include "ops/api/variable.hpp"

namespace troupe {

// Keeps a moving average of `value`: each training step does average += rate * (value - average).
// Returns the update; training steps find it through moving_averages().
Op move_average(const Variable& average, double rate, Output value, Site site = Site::here());

// The updates of all averages of something that `y` is computed from, or of y itself, in the order
// of the graph; behind them, where y comes out of branches, loops or functions, a node that asks
// for the updates in these: without it running them moves no average. What optim::gradients makes a
// part of every training step.
std::vector<Op> moving_averages(Output y, Site site = Site::here());

}  // namespace troupe
