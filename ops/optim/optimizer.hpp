// What optimizers share: from gradients to the node that makes one step of training.
#pragma once

#include "core/function_ref.hpp"
#include "ops/optim/gradients.hpp"
#include "ops/optim/schedule.hpp"

namespace troupe::optim {

// One parameter while a rule makes its update.
class Parameter {
 public:
  // What the parameters of one call of apply() share.
  class Shared;

  Parameter(const Gradient& gradient, Shared& shared) : of_(gradient), shared_(shared) {}

  const Variable& variable() const { return of_.variable; }
  const Output& gradient() const { return of_.value; }
  // The gradient of the loss plus decay / 2 times the parameter's square: gradient + decay * value.
  Output gradient_with_decay(double decay) const;
  // A rate as a scalar of the parameter's dtype, computed once for all parameters of a dtype.
  Output rate(const Rate& rate, const char* name) const;
  // State kept beside the parameter, zero at first: same shape and dtype, or an i64 counter.
  Variable slot(const char* name) const;
  Variable counter(const char* name) const;
  // Adds the node that logs the update. Its op is one that add_update() registered
  // (ops/kernels/state/update.hpp): only those can leave out a run. What a rule writes otherwise is
  // refused where runs are left out (accumulate()).
  Op write(NodeSpec node) const;

 private:
  const Gradient& of_;
  Shared& shared_;
};

// Adds `update(parameter)` for each gradient, and a node that is done when all updates are logged.
// Throws Error for an empty list.
Op apply_each(const Gradients& gradients, FunctionRef<Op(const Parameter&)> update,
              const Site& site);

// An optimizer is a struct of rates with a rule, `update`, in a file of its own, and three
// functions that are the same for all: see sgd.hpp.
template <class Rule>
Op apply_rule(const Rule& rule, const Gradients& gradients, const Site& site) {
  return apply_each(
      gradients, [&](const Parameter& p) { return rule.update(p); }, site);
}

}  // namespace troupe::optim
