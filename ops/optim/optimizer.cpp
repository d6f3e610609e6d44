#include "ops/optim/optimizer.hpp"

#include <map>
#include <optional>
#include <utility>

#include "ops/api/constant.hpp"
#include "ops/api/generated.hpp"
#include "ops/optim/state.hpp"

namespace troupe::optim {
#include "ops/api/node.hpp"

class Parameter::Shared {
 public:
  Shared(GraphBuilder& graph, const Gradients& gradients, const Site& site)
      : graph(graph), gradients(gradients), site(site), scope_(graph.scope_prefix()) {}

  Output rate(const Rate& rate, const char* name, const Variable& beside) {
    auto [at, added] = rates_.try_emplace({name, beside.dtype()});
    if (added) {
      auto here = graph.with_scope(scope_);
      auto inside = graph.with_scope(name);
      at->second = made(rate, name, beside);
    }
    return at->second;
  }

  Op write(NodeSpec node) {
    node.site = site;
    if (!gradients.when.empty()) {
      node.op += "When";
      node.inputs.push_back(gradients.when);
    }
    auto there = graph.with_resource(node.inputs[0]);
    return graph.add(std::move(node));
  }

  // What counts the updates, if a schedule asked for it.
  std::vector<Op> count_update() {
    if (!updates_) return {};
    const Output one = constant(graph, std::int64_t{1}, site);
    return {write({.op = "AssignAdd", .inputs = {updates_->handle(), one}})};
  }

  GraphBuilder& graph;
  const Gradients& gradients;
  const Site& site;

 private:
  Output made(const Rate& rate, const char* name, const Variable& beside) {
    if (rate.schedule() == nullptr && !rate.value().is_number())
      check_given(std::string("apply: the rate ") + name, rate.value().output(),
                  rate.value().site());
    if (rate.schedule() == nullptr && rate.value().is_number())
      return rate.value().beside(beside.value());
    const Output value =
        rate.schedule() == nullptr ? rate.value().output() : (*rate.schedule())(updates_before());
    return value.dtype() == beside.dtype() ? value : cast(value, beside.dtype(), site);
  }

  Output updates_before() {
    if (!updates_) {
      auto here = graph.with_scope(scope_);
      updates_ =
          zeros_beside(gradients.each.front().variable, "updates", DType::i64, Shape{}, site);
    }
    return cast(*updates_, DType::f64, site);
  }

  const std::string scope_;
  std::map<std::pair<std::string, DType>, Output> rates_;
  std::optional<Variable> updates_;
};

Output Parameter::gradient_with_decay(double decay) const {
  if (decay == 0) return gradient();
  const Operand factor(decay, shared_.site), value(variable().value(), shared_.site);
  return add(gradient(), factor * value, shared_.site);
}

Output Parameter::rate(const Rate& rate, const char* name) const {
  return shared_.rate(rate, name, variable());
}

Variable Parameter::slot(const char* name) const { return slot_of(variable(), name, shared_.site); }

Variable Parameter::counter(const char* name) const {
  auto inside = shared_.graph.with_scope(variable().name() + "/");
  return zeros_beside(variable(), name, DType::i64, Shape{}, shared_.site);
}

Op Parameter::write(NodeSpec node) const { return shared_.write(std::move(node)); }

Op apply_each(const Gradients& gradients, FunctionRef<Op(const Parameter&)> update,
              const Site& site) {
  check_gradients("apply", gradients, site);
  GraphBuilder& g = gradients.each.front().value.graph();
  auto inside = g.with_scope("train");
  Parameter::Shared shared(g, gradients, site);
  std::vector<Op> step = gradients.writes;
  for (const Gradient& gradient : gradients.each) step.push_back(update({gradient, shared}));
  for (Op count : shared.count_update()) step.push_back(count);
  return group(g, std::move(step), "step", site);
}

}  // namespace troupe::optim
