// Moving averages over training steps.
#pragma once

#include <vector>

#include "ops/api/variable.hpp"

namespace troupe {

// Keeps a moving average of `value`: each training step does average += rate * (value - average).
// Returns the update; training steps find it through moving_averages().
Op move_average(const Variable& average, double rate, Output value, Site site = Site::here());

// The same of each of several variables, as they are behind the ops in `after`, and one node for
// all of them. A network evaluated beside the one that is trained, or one that follows it slowly:
//
//   Op train = optim::Adam{}.minimize(loss);
//   Op follow = move_average(slow.parameters(), 0.005, net.parameters(), {train});
//   auto step = session.compile({loss}, {follow});
//
// Without `after` the values are those that the step begins with, and each training step of a loss
// that depends on them moves the averages. Throws Error as assign() of lists does.
Op move_average(const std::vector<Variable>& averages, double rate, const std::vector<Variable>& of,
                const std::vector<Op>& after = {}, Site site = Site::here());

// The updates of all averages of something that `y` is computed from, or of y itself, in the order
// of the graph; behind them, where y comes out of branches, loops or functions, a node that asks
// for the updates in these: without it running them moves no average. What optim::gradients makes a
// part of every training step.
std::vector<Op> moving_averages(Output y, Site site = Site::here());

}  // namespace troupe
