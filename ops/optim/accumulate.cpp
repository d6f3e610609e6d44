#include "ops/optim/accumulate.hpp"

#include "ops/api/generated.hpp"
#include "ops/api/operators.hpp"
#include "ops/optim/state.hpp"

namespace troupe::optim {
namespace {

// Where the variable is, under whatever device the client builds its training step.
Op assign_there(const Variable& v, const Output& value, const Site& site) {
  auto there = v.handle().graph().with_resource(v.handle());
  return assign(v, value, site);
}

}  // namespace

Gradients accumulate(Gradients gradients, std::int64_t runs, Site site) {
  if (runs < 1) throw Error(invalid_argument("accumulate: at least one run").at(site));
  check_gradients("accumulate", gradients, site);
  if (gradients.accumulated)
    throw Error(invalid_argument("accumulate: accumulated already").at(site));
  GraphBuilder& g = gradients.each.front().value.graph();
  auto inside = g.with_scope("accumulate");
  Gradients out = over_replicas(gradients, site);

  const Variable count = zeros_beside(out.each.front().variable, "runs", DType::i64, Shape{}, site);
  const Output next = Operand(count, site) + Operand(1, site);
  const Output due =
      Operand(mod(next, Operand(runs, site).beside(next), site), site) == Operand(0, site);
  out.when = due;
  if (!gradients.when.empty()) {
    // False: the condition was true in all runs so far.
    const Variable against =
        zeros_beside(out.each.front().variable, "against", DType::bool_, Shape{}, site);
    const Output any =
        logical_or(against, logical_not(in_all_replicas(gradients.when, site), site), site);
    out.when = logical_and(due, logical_not(any, site), site);
    out.writes.push_back(
        assign_there(against, logical_and(any, logical_not(due, site), site), site));
  }
  out.accumulated = true;
  out.writes.push_back(assign_there(count, next, site));
  for (Gradient& gradient : out.each) {
    const Variable before = slot_of(gradient.variable, "accumulated", site);
    const Output total = add(before, gradient.value, site);
    const Output kept = select(due, zeros_like(total, site), total, site);
    out.writes.push_back(assign_there(before, kept, site));
    gradient.value = Operand(total, site) / Operand(runs, site);
  }
  return out;
}

}  // namespace troupe::optim
