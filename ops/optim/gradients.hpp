// Gradients as values: what stands between a loss and an optimizer.
#pragma once

#include <string_view>
#include <vector>

#include "ops/api/variable.hpp"

namespace troupe::optim {

// A variable and the gradient of a loss for it: of its dtype and shape.
struct Gradient {
  Variable variable;
  Output value;
};

// What an optimizer's apply() takes. A value; a program may change `each` as it likes.
struct Gradients {
  std::vector<Gradient> each;
  Output when = {};             // bool scalar: a run in which it is false changes no parameter
  std::vector<Op> writes = {};  // done by every training step besides: moving averages, sums
  bool joined = false;          // see over_replicas

  std::size_t size() const { return each.size(); }
  Gradient& operator[](std::size_t i) { return each[i]; }
  const Gradient& operator[](std::size_t i) const { return each[i]; }
};

// Throws Error, in the name of `what`, unless there are gradients and each has its variable and
// value.
void check_gradients(std::string_view what, const Gradients& gradients, const Site& site);

// The gradients of `loss`, a scalar, one for each parameter that it depends on, in the order of the
// parameters. A gradient is summed over all reads of its parameter (graph/gradients.hpp); one that
// stands twice in the list, or that two handles share, is there once. Without `parameters`, those
// are trainable_variables(). The moving averages of what the loss is computed from are a part of
// the training step (ops/api/moving_average.hpp). Throws Error for a loss of several numbers (a
// loss whose shape is not known is refused in the run), when the loss depends on none of them, or
// on one of them through an op without gradient or a read behind a write of the same run.
Gradients gradients(Output loss, Site site = Site::here());
Gradients gradients(Output loss, const std::vector<Variable>& parameters, Site site = Site::here());

// The same, each the mean over all replicas of a step. An update takes the mean of what the
// replicas contribute by itself; what must see that mean before (a norm, a sum over runs) starts
// here, or it would be of each replica's part. With one replica nothing changes.
Gradients over_replicas(Gradients gradients, Site site = Site::here());

}  // namespace troupe::optim
