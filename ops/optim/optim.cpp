#include "troupe/ops/optim/optim.hpp"

#include <map>
#include <utility>

#include "troupe/core/function_ref.hpp"
#include "troupe/graph/gradients.hpp"
#include "troupe/ops/api/constant.hpp"
#include "troupe/ops/api/node.hpp"

namespace troupe::optim {

namespace {

// One call of minimize: what the updates share.
class Training {
 public:
  Training(Output loss, const Site& site) : loss_(loss), graph_(loss.graph()), site_(site) {}

  // update(parameter, its gradient) adds one update.
  Op updates(const std::vector<Variable>& all,
             FunctionRef<Op(const Variable&, const Output&)> update) {
    const std::vector<Variable> parameters = distinct(all);
    std::vector<Output> handles;
    for (const Variable& v : parameters) handles.push_back(v.handle());
    auto site = graph_.with_site(site_);
    const auto grads = value_or_throw(gradients(std::span(&loss_, 1), handles));
    auto inside = graph_.with_scope("train");
    scope_ = graph_.scope_prefix();
    std::vector<Op> ops;
    for (std::size_t i = 0; i < parameters.size(); ++i)
      if (!grads[i].empty()) ops.push_back(update(parameters[i], grads[i]));
    if (ops.empty())
      throw Error(invalid_argument("minimize: '" + loss_.name() + "' depends on none of the " +
                                   std::to_string(parameters.size()) + " parameters")
                      .at(site_));
    return group(graph_, std::move(ops), "step", site_);
  }

  // The rate as a scalar of the parameter's dtype. One constant serves all parameters.
  Output rate(const Operand& operand, const char* name, const Variable& v) {
    if (!operand.output().empty()) return operand.output();
    auto [at, added] = rates_.try_emplace({name, v.dtype()});
    if (added) {
      auto here = graph_.with_scope(scope_);
      auto inside = graph_.with_scope(name);
      at->second = operand.beside(v.value());
    }
    return at->second;
  }

  // State kept beside a parameter, zero at first: same shape and dtype, or a counter.
  Variable slot(const Variable& v, const char* name) {
    return zeros(v, name, v.dtype(), v.shape().shape());
  }
  Variable counter(const Variable& v, const char* name) {
    return zeros(v, name, DType::i64, Shape{});
  }

  Op add(NodeSpec node) {
    node.site = site_;
    return graph_.add(std::move(node));
  }

 private:
  Variable zeros(const Variable& v, const char* name, DType dtype, const Shape& shape) {
    auto inside = graph_.with_scope(v.name() + "/");
    auto beside = graph_.with_colocation(v.name());
    const Output dims =
        constant(graph_, Tensor::of<std::int64_t>(Shape{shape.rank()}, shape.dims()), site_);
    const Output zero = constant(graph_, value_or_throw(scalar_of(dtype, std::int64_t{0})), site_);
    const Output initial =
        graph_.add(NodeSpec{.op = "Fill", .inputs = {dims, zero}, .site = site_}).output();
    const NodeDef& node = graph_.node(v.handle().node());
    const std::string container = *node.attrs.at("container").get<std::string>();
    return variable(graph_, name, initial, {.trainable = false, .container = container}, site_);
  }

  Output loss_;
  GraphBuilder& graph_;
  Site site_;
  std::string scope_;
  std::map<std::pair<std::string, DType>, Output> rates_;
};

}  // namespace

Op Sgd::minimize(Output loss, const std::vector<Variable>& parameters, Site site) const {
  Training training(loss, site);
  return training.updates(parameters, [&](const Variable& v, const Output& grad) {
    return training.add(
        {.op = "ApplyGradientDescent", .inputs = {v.handle(), training.rate(lr, "lr", v), grad}});
  });
}

Op Momentum::minimize(Output loss, const std::vector<Variable>& parameters, Site site) const {
  Training training(loss, site);
  return training.updates(parameters, [&](const Variable& v, const Output& grad) {
    const Variable velocity = training.slot(v, "velocity");
    return training.add({.op = "ApplyMomentum",
                         .inputs = {v.handle(), velocity.handle(), training.rate(lr, "lr", v), grad,
                                    training.rate(momentum, "momentum", v)},
                         .attrs = {{"nesterov", nesterov}}});
  });
}

Op Adam::minimize(Output loss, const std::vector<Variable>& parameters, Site site) const {
  Training training(loss, site);
  return training.updates(parameters, [&](const Variable& v, const Output& grad) {
    const Variable m = training.slot(v, "m"), s = training.slot(v, "v"),
                   step = training.counter(v, "step");
    return training.add(
        {.op = "ApplyAdam",
         .inputs = {v.handle(), m.handle(), s.handle(), step.handle(), training.rate(lr, "lr", v),
                    training.rate(beta1, "beta1", v), training.rate(beta2, "beta2", v),
                    training.rate(epsilon, "epsilon", v), grad}});
  });
}

Op Sgd::minimize(Output loss, Site site) const {
  return minimize(loss, trainable_variables(loss.graph()), std::move(site));
}
Op Momentum::minimize(Output loss, Site site) const {
  return minimize(loss, trainable_variables(loss.graph()), std::move(site));
}
Op Adam::minimize(Output loss, Site site) const {
  return minimize(loss, trainable_variables(loss.graph()), std::move(site));
}

}  // namespace troupe::optim
