#include "troupe/ops/optim/optimizer.hpp"

#include <map>
#include <utility>

#include "troupe/graph/gradients.hpp"
#include "troupe/ops/api/constant.hpp"

namespace troupe::optim {

class Parameter::Shared {
 public:
  Shared(GraphBuilder& graph, const Site& site)
      : graph(graph), site(site), scope(graph.scope_prefix()) {}

  GraphBuilder& graph;
  const Site& site;
  const std::string scope;
  std::map<std::pair<std::string, DType>, Output> rates;
};

Gradients gradients(Output loss, const std::vector<Variable>& parameters, Site site) {
  const std::vector<Variable> all = distinct(parameters);
  std::vector<Output> handles;
  for (const Variable& v : all) handles.push_back(v.handle());
  auto here = loss.graph().with_site(site);
  const auto values = value_or_throw(troupe::gradients(std::span(&loss, 1), handles));
  Gradients out;
  for (std::size_t i = 0; i < all.size(); ++i)
    if (!values[i].empty()) out.push_back({all[i], values[i]});
  if (out.empty())
    throw Error(invalid_argument("gradients: '" + loss.name() + "' depends on none of the " +
                                 std::to_string(all.size()) + " parameters")
                    .at(site));
  return out;
}

Gradients gradients(Output loss, Site site) {
  return gradients(loss, trainable_variables(loss.graph()), std::move(site));
}

Output Parameter::rate(const Operand& value, const char* name) const {
  if (!value.output().empty()) return value.output();
  auto [at, added] = shared_.rates.try_emplace({name, variable().dtype()});
  if (added) {
    auto here = shared_.graph.with_scope(shared_.scope);
    auto inside = shared_.graph.with_scope(name);
    at->second = value.beside(variable().value());
  }
  return at->second;
}

Variable Parameter::slot(const char* name) const {
  return zeros(name, variable().dtype(), variable().shape().shape());
}

Variable Parameter::counter(const char* name) const { return zeros(name, DType::i64, Shape{}); }

Op Parameter::write(NodeSpec node) const {
  node.site = shared_.site;
  return shared_.graph.add(std::move(node));
}

Variable Parameter::zeros(const char* name, DType dtype, const Shape& shape) const {
  GraphBuilder& g = shared_.graph;
  const Variable& beside = variable();
  auto inside = g.with_scope(beside.name() + "/");
  auto near = g.with_colocation(beside.name());
  const Output dims =
      constant(g, Tensor::of<std::int64_t>(Shape{shape.rank()}, shape.dims()), shared_.site);
  const Output zero = constant(g, value_or_throw(scalar_of(dtype, std::int64_t{0})), shared_.site);
  const Output initial =
      g.add(NodeSpec{.op = "Fill", .inputs = {dims, zero}, .site = shared_.site}).output();
  const NodeDef& node = g.node(beside.handle().node());
  const std::string container = *node.attrs.at("container").get<std::string>();
  return troupe::variable(g, name, initial, {.trainable = false, .container = container},
                          shared_.site);
}

Op apply_each(const Gradients& gradients, FunctionRef<Op(const Parameter&)> update,
              const Site& site) {
  if (gradients.empty()) throw Error(invalid_argument("apply: no gradients").at(site));
  GraphBuilder& g = gradients.front().value.graph();
  auto inside = g.with_scope("train");
  Parameter::Shared shared(g, site);
  std::vector<Op> updates;
  for (const Gradient& gradient : gradients) updates.push_back(update({gradient, shared}));
  return group(g, std::move(updates), "step", site);
}

}  // namespace troupe::optim
