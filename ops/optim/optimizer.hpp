// What optimizers share: from gradients to the node that makes one step of training.
#pragma once

#include <string>
#include <vector>

#include "troupe/core/function_ref.hpp"
#include "troupe/ops/api/operators.hpp"
#include "troupe/ops/api/variable.hpp"

namespace troupe::optim {

// A variable and the gradient of a loss for it: of its dtype and shape.
struct Gradient {
  Variable variable;
  Output value;
};
using Gradients = std::vector<Gradient>;

// The gradients of `loss`, one for each parameter that it depends on, in the order of the
// parameters. A gradient is summed over all reads of its parameter (graph/gradients.hpp); one that
// stands twice in the list, or that two handles share, is there once. Without `parameters`, those
// are trainable_variables(). Throws Error when the loss depends on none of them, or on one of them
// through an op without gradient or a read behind a write of the same run.
Gradients gradients(Output loss, Site site = Site::here());
Gradients gradients(Output loss, const std::vector<Variable>& parameters, Site site = Site::here());

// One parameter while a rule makes its update.
class Parameter {
 public:
  // What the parameters of one call of apply() share.
  class Shared;

  Parameter(const Gradient& gradient, Shared& shared) : of_(gradient), shared_(shared) {}

  const Variable& variable() const { return of_.variable; }
  const Output& gradient() const { return of_.value; }
  // A rate as a scalar of the parameter's dtype. One constant serves all parameters.
  Output rate(const Operand& value, const char* name) const;
  // State kept beside the parameter, zero at first: same shape and dtype, or an i64 counter.
  Variable slot(const char* name) const;
  Variable counter(const char* name) const;
  // Adds the node that logs the update.
  Op write(NodeSpec node) const;

 private:
  Variable zeros(const char* name, DType dtype, const Shape& shape) const;

  const Gradient& of_;
  Shared& shared_;
};

// Adds `update(parameter)` for each gradient, and a node that is done when all updates are logged.
// Throws Error for an empty list, and for gradients of several graphs.
Op apply_each(const Gradients& gradients, FunctionRef<Op(const Parameter&)> update,
              const Site& site);

// An optimizer is a struct of rates with a rule, `update`, in a file of its own:
//
//   struct Sgd {
//     Operand lr = 0.01;
//     Op update(const Parameter& p) const;
//     ... and these three, which are the same for all:
//   };
template <class Rule>
Op apply_rule(const Rule& rule, const Gradients& gradients, const Site& site) {
  return apply_each(
      gradients, [&](const Parameter& p) { return rule.update(p); }, site);
}

}  // namespace troupe::optim
