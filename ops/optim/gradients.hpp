// Gradients of a loss as values, for optimizers.
#pragma once

#include <string_view>
#include <utility>
#include <vector>

#include "core/function_ref.hpp"
#include "ops/api/variable.hpp"

namespace troupe::optim {

// A variable and the gradient of a loss with respect to it, of the same dtype and shape.
struct Gradient {
  Variable variable;
  Output value;
  bool of_rows = false;  // gradients() made it of rows that the loss gathers
};

// The argument of an optimizer's apply(). A plain value: programs may change `each`.
struct Gradients {
  std::vector<Gradient> each;
  // Scalar bool: parameters change only in runs where it is true, in all replicas of the step.
  Output when = {};
  std::vector<Op> writes = {};  // further writes of every training step: moving averages, sums
  bool joined = false;          // see over_replicas
  bool accumulated = false;     // see accumulate

  std::size_t size() const { return each.size(); }
  Gradient& operator[](std::size_t i) { return each[i]; }
  const Gradient& operator[](std::size_t i) const { return each[i]; }
};

// Throws Error, in the name of `what`, unless there are gradients and each has its variable and
// value.
void check_gradients(std::string_view what, const Gradients& gradients, const Site& site);

// Whether `when` is true in all replicas of the step.
Output in_all_replicas(const Output& when, const Site& site);

// The gradients of a scalar `loss`, one for each parameter that it depends on, in the order of
// `parameters` (default: trainable_variables()). A gradient is summed over all reads of its
// parameter (graph/gradients.hpp); duplicate parameters count once. The updates of moving averages
// that the loss depends on become part of the training step (ops/api/moving_average.hpp). Throws
// Error if the loss is not a scalar (checked in the run if its shape is unknown before), if it
// depends on no parameter, or if it depends on one through an op without a gradient or through a
// read that is ordered after a write of the same run.
Gradients gradients(Output loss, Site site = Site::here());
Gradients gradients(Output loss, const std::vector<Variable>& parameters, Site site = Site::here());

// The gradients of the variables for which `first` is true, and those of all others, for rates or
// rules that differ. Both have all else that the gradients have. Throws Error unless each has a
// variable and a value.
//
//   auto [matrices, others] = optim::split(
//       optim::gradients(loss), [](const Variable& v) { return v.shape().rank() > 1; });
//   Op train = group(g, {optim::AdamW{.weight_decay = 0.1}.apply(matrices),
//                        optim::AdamW{.weight_decay = 0}.apply(others)});
std::pair<Gradients, Gradients> split(Gradients gradients, FunctionRef<bool(const Variable&)> first,
                                      Site site = Site::here());

// The mean of each gradient over all replicas of a step. Updates take this mean by themselves. Use
// over_replicas() before functions that must see the mean rather than one replica's gradient: a
// norm, or a sum over runs. With one replica it has no effect.
Gradients over_replicas(Gradients gradients, Site site = Site::here());

}  // namespace troupe::optim
