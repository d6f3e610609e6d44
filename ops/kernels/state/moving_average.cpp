// ApplyMovingAverage: statistics of what training steps see.
#include "graph/control/state/averages.hpp"
#include "ops/cuda/update.hpp"
#include "ops/formulas/updates.hpp"
#include "ops/kernels/state/update.hpp"

using namespace troupe;

namespace {

template <class T>
Status approach(KernelContext& c) {
  TROUPE_TRY(auto var, NewValue<T>::of(c, 0));
  const formula::AverageStep<T> step{scalar_operand<T>(c, 1)};
  update_elements(c, c.input(2).data<T>(), step, var);
  c.set_output(0, var.take());
  return ok_status();
}

Status approach_any(KernelContext& c) {
  return c.input(0).dtype() == DType::f32 ? approach<float>(c) : approach<double>(c);
}

Status nothing(KernelContext&) { return ok_status(); }

}  // namespace

TROUPE_OPS(moving_average) {
  add_update<kernel<approach_any>, cuda::moving_average>(
      r, {.name = "ApplyMovingAverage",
          .in = {"var: resource", "rate", "value"},
          .types = "f32 f64",
          .attrs = {std::string(kTrainingOnlyAttr) + ": bool = false"},
          .reduce = {"value"},
          .combine = Combine::mean,
          .doc = "var += rate * (value - var), with the mean of the replicas' values. A training "
                 "step updates every average of values that its loss is computed from. In a "
                 "function, a training_only write is left out of all other steps."});
  r.add({.name = std::string(kMoveAveragesOp),
         .shape = no_outputs,
         .no_gradient = "no outputs",
         .cheap = true,
         .doc = "A node of training steps: training_only writes that come before it, or are in "
                "functions run by nodes before it, are part of the step, too."})
      .cpu(kernel<nothing>);
}
