#include "ops/optim/optimizer.hpp"

#include <algorithm>
#include <cmath>
#include <complex>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "ops/api/constant.hpp"
#include "ops/api/generated.hpp"
#include "ops/api/math.hpp"
#include "ops/api/node.hpp"
#include "ops/optim/row_parts.hpp"
#include "ops/optim/state.hpp"

namespace troupe::optim {

namespace {

// Of a rate that is a number: what is no rate would make every parameter NaN, or climb.
void check_rate(const char* name, const Output& number, const Site& site) {
  const auto attr = number.graph().node(number.node()).attrs.find("value");
  if (attr == number.graph().node(number.node()).attrs.end()) return;
  const Tensor* tensor = attr->second.get<Tensor>();
  if (tensor == nullptr) return;
  double value = 0;
  switch (tensor->dtype()) {
    case DType::f32:
      value = tensor->item<float>();
      break;
    case DType::f64:
      value = tensor->item<double>();
      break;
    case DType::f16:
      value = double(float(tensor->item<half>()));
      break;
    case DType::bf16:
      value = double(float(tensor->item<bfloat16>()));
      break;
    case DType::c64:
      value = double(tensor->item<std::complex<float>>().real());
      break;
    case DType::c128:
      value = tensor->item<std::complex<double>>().real();
      break;
    default:
      return;
  }
  if (value >= 0 && std::isfinite(value)) return;
  throw Error(invalid_argument("the rate '" + std::string(name) +
                               "' of an optimizer is finite and not negative, not " +
                               std::to_string(value))
                  .at(site));
}

}  // namespace

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
    if (node.inputs.empty())
      throw Error(invalid_argument("apply: a rule writes by a node without inputs").at(site));
    check_given("apply: what a rule writes", node.inputs[0], site);
    auto there = graph.with_resource(node.inputs[0]);
    const Op made = graph.add(std::move(node));
    written_.insert(made.node());
    return made;
  }

  // A rule's update of one parameter. Throws Error for a write that is not made by write() where
  // runs are left out: it would take effect in them all the same.
  Op update(const Gradient& gradient, FunctionRef<Op(const Parameter&)> rule) {
    GraphBuilder& g = graph.innermost();
    const std::size_t before = g.def().nodes.size();
    const Op made = rule({gradient, *this});
    const std::string of = "apply: the update of '" + gradient.variable.name() + "'";
    if (made.empty()) throw Error(invalid_argument(of + " is an empty Op").at(site));
    if (gradients.when.empty()) return made;
    if (&made.graph() == &g && made.node() < before) check_write(g, made.node(), of);
    for (std::size_t id = before; id < g.def().nodes.size(); ++id) check_write(g, NodeId(id), of);
    return made;
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
    if (rate.schedule() == nullptr && rate.value().is_number()) {
      const Output number = rate.value().beside(beside.value());
      check_rate(name, number, rate.value().site());
      return number;
    }
    const Output value =
        rate.schedule() == nullptr ? rate.value().output() : (*rate.schedule())(updates_before());
    if (is_complex(value.dtype()))
      throw Error(invalid_argument("the rate '" + std::string(name) +
                                   "' of an optimizer is a real number, also of complex variables")
                      .at(site));
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

  void check_write(const GraphBuilder& g, NodeId id, const std::string& of) const {
    const NodeDef& node = g.node(id);
    const OpInfo* op = g.registry().find(node.op);
    const auto& initial = g.initializers();
    if (!op || !op->is(External::Order::write) || written_.contains(id) ||
        std::find(initial.begin(), initial.end(), id) != initial.end())
      return;
    throw Error(
        invalid_argument(of + " writes by '" + node.name +
                         "' in every run, also in those that accumulate() leaves out: a rule "
                         "writes by Parameter::write")
            .at(node.site.known() ? node.site : site));
  }

  const std::string scope_;
  std::set<NodeId> written_;
  std::map<std::pair<std::string, DType>, Output> rates_;
  std::optional<Variable> updates_;
};

std::optional<Parameter::Rows> Parameter::rows(std::int64_t least) const {
  const PartialShape shape = of_.variable.shape();
  if (!shape.fully_known() || shape.rank() < 1) return std::nullopt;
  const Shape whole = value_or_throw(Shape::make(shape.dims()));
  if (whole.elements() < least) return std::nullopt;
  const std::vector<RowPart> parts = row_parts(of_.value, least == 0);
  if (parts.empty()) return std::nullopt;
  bool mixed = false;
  for (const RowPart& part : parts) mixed |= part.indices.dtype() != parts[0].indices.dtype();
  std::vector<std::int64_t> dims(whole.dims().begin(), whole.dims().end());
  dims[0] = -1;
  std::vector<Output> indices, rows;
  for (const RowPart& part : parts) {
    indices.push_back(reshape(part.indices, std::vector<std::int64_t>{-1}, shared_.site));
    rows.push_back(reshape(part.rows, dims, shared_.site));
    if (!part.factor.empty()) rows.back() = mul(rows.back(), part.factor, shared_.site);
    if (mixed) indices.back() = cast(indices.back(), DType::i64, shared_.site);
  }
  if (parts.size() == 1) return Rows{indices[0], rows[0]};
  return Rows{concat(indices, 0, shared_.site), concat(rows, 0, shared_.site)};
}

std::optional<Parameter::Rows> Parameter::lazy_rows(bool lazy) const {
  if (!lazy) return std::nullopt;
  std::optional<Rows> found = rows(0);
  if (!found && of_.of_rows)
    throw Error(invalid_argument(
                    "lazy: the gradient of '" + variable().name() +
                    "' was that of rows and is a whole one now, by which every row would change: "
                    "clip it by norm rather than by value, scale it by scalars, do not accumulate "
                    "it, or be not lazy")
                    .at(shared_.site));
  return found;
}

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

Op Parameter::write_gradient(NodeSpec node, bool lazy) const {
  const std::optional<Rows> rows = lazy_rows(lazy);
  if (rows) {
    node.op.insert(std::string_view("Apply").size(), "Sparse");
    node.inputs.push_back(rows->indices);
  }
  node.inputs.push_back(rows ? rows->rows : gradient());
  return write(std::move(node));
}

const Site& Parameter::site() const { return shared_.site; }

Op apply_each(const Gradients& all, FunctionRef<Op(const Parameter&)> update, const Site& site) {
  check_gradients("apply", all, site);
  GraphBuilder& g = all.each.front().value.graph();
  auto inside = g.with_scope("train");
  Gradients gradients = all;
  if (!all.when.empty()) gradients.when = in_all_replicas(all.when, site);
  Parameter::Shared shared(g, gradients, site);
  std::vector<Op> step = gradients.writes;
  for (const Gradient& gradient : gradients.each) step.push_back(shared.update(gradient, update));
  for (Op count : shared.count_update()) step.push_back(count);
  return group(g, std::move(step), "step", site);
}

}  // namespace troupe::optim
