#include "ops/optim/gradients.hpp"

#include <optional>
#include <utility>

#include "graph/gradients.hpp"
#include "ops/api/generated.hpp"
#include "ops/api/moving_average.hpp"
#include "ops/api/node.hpp"
#include "ops/optim/row_parts.hpp"

namespace troupe::optim {

namespace {

// A step of training lowers one number. The gradient of several is that of their sum, which grows
// with the batch: nobody means it who forgot a mean.
Output checked_loss(Output loss, const Site& site) {
  const PartialShape& shape = loss.shape();
  if (!shape.known_rank()) return ensure_shape(loss, PartialShape::scalar(), site);
  if (shape.fully_known() && shape.shape().elements() == 1) return loss;
  throw Error(invalid_argument("gradients: the loss '" + loss.name() + "' has shape " +
                               shape.text() +
                               ", and a loss is one number: take its mean() or sum()")
                  .at(site));
}

}  // namespace

void check_gradients(std::string_view what, const Gradients& gradients, const Site& site) {
  const std::string before = std::string(what) + ": ";
  if (gradients.each.empty()) throw Error(invalid_argument(before + "no gradients").at(site));
  for (std::size_t i = 0; i < gradients.size(); ++i) {
    const std::string which = before + "gradient " + std::to_string(i);
    check_given(which + " has a variable that", gradients[i].variable.handle(), site);
    check_given(which + ", of '" + gradients[i].variable.name() + "',", gradients[i].value, site);
  }
}

Output in_all_replicas(const Output& when, const Site& site) {
  // The mean of zeros is 0 exactly.
  const Output against = cast(logical_not(when, site), DType::f32, site);
  const Output share = add_node({.op = "ReplicaMean", .inputs = {against}, .site = site}).output();
  return Operand(share, site) == Operand(0, site);
}

Gradients gradients(Output loss, const std::vector<Variable>& parameters, Site site) {
  check_given("gradients: the loss", loss, site);
  loss = checked_loss(loss, site);
  const std::vector<Variable> all = distinct(parameters, site);
  std::vector<Output> handles;
  for (const Variable& v : all) handles.push_back(v.handle());
  auto here = loss.graph().with_site(site);
  const auto values = value_or_throw(troupe::gradients(std::span(&loss, 1), handles));
  Gradients out;
  for (std::size_t i = 0; i < all.size(); ++i)
    if (!values[i].empty())
      out.each.push_back({all[i], values[i], !row_parts(values[i], false).empty()});
  if (out.each.empty())
    throw Error(invalid_argument("gradients: '" + loss.name() + "' depends on none of the " +
                                 std::to_string(all.size()) + " parameters")
                    .at(site));
  out.writes = moving_averages(loss, site);
  return out;
}

Gradients gradients(Output loss, Site site) {
  check_given("gradients: the loss", loss, site);
  return gradients(loss, trainable_variables(loss.graph()), std::move(site));
}

std::pair<Gradients, Gradients> split(Gradients gradients, FunctionRef<bool(const Variable&)> first,
                                      Site site) {
  check_gradients("split", gradients, site);
  const std::vector<Gradient> all = std::exchange(gradients.each, {});
  std::pair<Gradients, Gradients> out{gradients, gradients};
  for (const Gradient& gradient : all)
    (first(gradient.variable) ? out.first : out.second).each.push_back(gradient);
  return out;
}

Gradients over_replicas(Gradients gradients, Site site) {
  check_gradients("over_replicas", gradients, site);
  if (gradients.joined) return gradients;
  for (Gradient& gradient : gradients.each) {
    GraphBuilder& g = gradient.value.graph();
    // A body does not know where the variable is.
    std::optional<GraphBuilder::Guard> there, beside;
    if (&g.innermost() == &gradient.variable.handle().graph()) {
      there.emplace(g.with_resource(gradient.variable.handle()));
      beside.emplace(g.with_colocation(gradient.variable.name()));
    }
    gradient.value =
        g.add(NodeSpec{.op = "ReplicaMean", .inputs = {gradient.value}, .site = site}).output();
  }
  gradients.joined = true;
  return gradients;
}

}  // namespace troupe::optim
