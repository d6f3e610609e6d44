// The common part of all optimizers, and how to write one.
#pragma once

#include <optional>

#include "core/function_ref.hpp"
#include "ops/optim/gradients.hpp"
#include "ops/optim/schedule.hpp"

namespace troupe::optim {

// One parameter, for which an update rule builds its update.
class Parameter {
 public:
  // State shared by all parameters of one call of apply().
  class Shared;

  Parameter(const Gradient& gradient, Shared& shared) : of_(gradient), shared_(shared) {}

  const Variable& variable() const { return of_.variable; }
  const Output& gradient() const { return of_.value; }
  // gradient + decay * value: the gradient of the loss plus decay / 2 times the squared parameter.
  Output gradient_with_decay(double decay) const;
  // A gradient that is 0 but for some rows, along dimension 0 of the parameter. Rows of one index
  // add up.
  struct Rows {
    Output indices;  // i32 or i64 [n]
    Output rows;     // [n, ...]
  };
  // The gradient as rows, where it is that of one or several Gathers from the parameter and of
  // nothing else. A rule that changes only these rows then need not go through the others;
  // gradient() is of no use to it and is not computed. `least` is the number of elements from which
  // on that pays, for rules to which rows and whole gradients mean the same.
  static constexpr std::int64_t kRowsPay = 1 << 16;
  std::optional<Rows> rows(std::int64_t least = kRowsPay) const;
  // For rules that leave other rows alone if they are `lazy`: rows of tables of any size, also
  // after over_replicas() and if they were scaled, as clip_by_norm() does. Throws Error if
  // gradients() has found rows and the gradient is no longer one of them.
  std::optional<Rows> lazy_rows(bool lazy) const;
  // The rate as a scalar of the parameter's dtype; computed once for all parameters of that dtype.
  Output rate(const Rate& rate, const char* name) const;
  // State of the rule for this parameter, initially zero: of its shape and dtype, or an i64
  // counter.
  Variable slot(const char* name) const;
  Variable counter(const char* name) const;
  // Adds the node that logs the update. Its op must be registered with add_update()
  // (ops/kernels/state/update.hpp): only such ops can skip a run. accumulate() refuses any other
  // write.
  Op write(NodeSpec node) const;
  // Adds `node`, an ApplyX, with the gradient as its last input. If the rule is `lazy` and the
  // gradient is rows, adds ApplySparseX instead, which leaves all other rows alone.
  Op write_gradient(NodeSpec node, bool lazy) const;
  // The call of apply().
  const Site& site() const;

 private:
  const Gradient& of_;
  Shared& shared_;
};

// Adds `update(parameter)` for each gradient, and a node that completes when all updates are
// logged. Throws Error if there are no gradients.
Op apply_each(const Gradients& gradients, FunctionRef<Op(const Parameter&)> update,
              const Site& site);

// An optimizer is a struct of rates, in a file of its own, with an update rule `update` and three
// functions that are the same for all optimizers: see sgd.hpp.
template <class Rule>
Op apply_rule(const Rule& rule, const Gradients& gradients, const Site& site) {
  return apply_each(
      gradients, [&](const Parameter& p) { return rule.update(p); }, site);
}

}  // namespace troupe::optim
