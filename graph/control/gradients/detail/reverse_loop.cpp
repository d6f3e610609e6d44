#include "graph/control/gradients/detail/reverse_loop.hpp"

#include <algorithm>
#include <utility>

#include "graph/control/gradients/detail/tape_copies.hpp"
#include "graph/detail/value_type.hpp"

namespace troupe::detail {
namespace {

constexpr std::size_t kToGo = 0;  // index of the variable with the number of iterations left

Output i64_constant(GraphBuilder& g, std::int64_t value) {
  return g.add("Const", {}, {{"T", DType::i64}, {"value", Tensor::scalar(value)}});
}

// Appends the list of an attribute or, if there is none, one default entry.
template <class T>
void append_attr(std::vector<T>& to, const NodeDef& node, const char* name) {
  const auto at = node.attrs.find(name);
  if (at == node.attrs.end()) return to.push_back(T());
  const auto& list = *at->second.template get<std::vector<T>>();
  to.insert(to.end(), list.begin(), list.end());
}

}  // namespace

ReverseLoop::ReverseLoop(GradContext& c, const LoopTape& loop, const IterationGradient& iteration)
    : c_(c), loop_(loop), iteration_(iteration) {}

Op ReverseLoop::make() {
  list_arguments();
  const std::string body = make_body();
  NodeSpec spec{.op = "While", .name = "grad"};
  for (const Argument& argument : arguments_) spec.inputs.push_back(argument.passed);
  const AttrMap& attrs = loop_.loop().attrs;
  spec.attrs = {{"cond", make_condition()},
                {"body", body},
                {"variables", std::int64_t(variables_)},
                {"reverses", std::int64_t(reverses_)},
                {"window", attrs.at("window")},
                {"save", attrs.at("save")}};
  return c_.g.add(std::move(spec));
}

// --- arguments ---

void ReverseLoop::list_arguments() {
  const PartialShape scalar = PartialShape::scalar();
  arguments_.push_back(
      {"to_go", {DType::i64, scalar}, c_.g.add(kSavedTripsOp, {c_.y.back()}), {}, {}});
  for (const IterationGradient::Result& result : iteration_.results) {
    const bool variable = result.input < loop_.variables();
    Output first = variable ? c_.dy[result.input] : Output();
    ValueType type = loop_.type_of(result.argument);
    if (first.empty() && !variable && c_.x[result.input].dtype() == DType::resource)
      first = zeros_of_variable(c_.g, c_.x[result.input], type.dtype);
    if (first.empty()) first = zero_gradient(variable ? c_.y[result.input] : c_.x[result.input]);
    first = of_dtype(first, type.dtype);
    type.shape = common_shape(type.shape, first.shape());
    arguments_.push_back({variable ? "dy" : "sum", type, first, result.argument, {}});
  }
  add_lists();
  variables_ = reverses_ = arguments_.size();
  arguments_.push_back({"saved", {DType::resource, {}}, c_.y.back(), {}, {}});
  add_invariants();
  // A loop that moves to a gradient function may know less about shapes there.
  if (c_.g.is_tape())
    for (Argument& argument : arguments_)
      argument.known = std::exchange(argument.type.shape, PartialShape::unknown());
}

void ReverseLoop::add_lists() {
  for (const IterationGradient::Inner& inner : iteration_.inner) {
    const ValueType element = loop_.type_of(inner.value);
    const PartialShape shape = common_shape(element.shape, inner.gradients.shape());
    arguments_.push_back({"dys", {DType::list, shape}, inner.gradients, inner.dy, element});
  }
  for (Port p : iteration_.from_run) {
    if (loop_.is_invariant(p.node) || loop_.dtype(p) == DType::resource) continue;
    const ValueType element = loop_.type_of(p);
    arguments_.push_back({"values", {DType::list, element.shape}, values_of(p), p, element});
  }
}

void ReverseLoop::add_invariants() {
  for (Port p : iteration_.from_run) {
    if (loop_.is_invariant(p.node)) {
      const Output& x = c_.x[loop_.input_of(p.node)];
      const bool handle = x.dtype() == DType::resource;
      const PartialShape shape = handle ? PartialShape::unknown() : x.shape();
      arguments_.push_back({"x", {x.dtype(), shape}, x, p, {}});
    } else if (loop_.dtype(p) == DType::resource) {
      arguments_.push_back({"saved", {DType::resource, {}}, run_of(p), p, {}});
    }
  }
}

// The port's values, as a list by iteration. If an inner loop saved it, each element is a list or a
// number.
Output ReverseLoop::values_of(Port p) const {
  const bool inside = !loop_.is_of_body(p.node);
  const NodeDef& reader = loop_.node(p.node);
  const Port of = inside ? reader.inputs[0] : p;
  std::vector<std::string> functions{loop_.function()}, nodes{loop_.node(of.node).name};
  std::vector<std::int64_t> ports{of.index};
  DType element = loop_.dtype(p);
  if (inside) {
    const auto at = reader.attrs.find("T");
    element = at == reader.attrs.end() ? DType::i64 : *at->second.get<DType>();
    append_attr(functions, reader, "functions");
    append_attr(nodes, reader, "nodes");
    append_attr(ports, reader, "ports");
  }
  NodeSpec spec{.op = std::string(kSavedListOp), .inputs = {c_.y.back()}};
  spec.attrs = {{"T", element},
                {"shape", loop_.type_of(p).shape},
                {"functions", functions},
                {"nodes", nodes},
                {"ports", ports}};
  return c_.g.add(std::move(spec)).output();
}

// The `saved` output of a call in the body: each iteration has its own run.
Output ReverseLoop::run_of(Port p) const {
  NodeSpec spec{.op = std::string(kSavedOp), .inputs = {c_.y.back()}};
  spec.attrs = {{"T", DType::resource},
                {"shape", PartialShape::unknown()},
                {"function", loop_.function()},
                {"branch", std::int64_t{1}},
                {"node", loop_.node(p.node).name},
                {"port", std::int64_t(p.index)}};
  return c_.g.add(std::move(spec)).output();
}

// --- functions ---

std::vector<Output> ReverseLoop::declare(Body& body) const {
  std::vector<Output> values;
  for (const Argument& argument : arguments_)
    values.push_back(value_or_throw(body.argument(argument.type, argument.name)));
  return values;
}

std::string ReverseLoop::make_condition() const {
  Body cond(c_.g, loop_.function() + "_grad_cond", loop_.loop().site, true);
  const std::vector<Output> values = declare(cond);
  GraphBuilder& g = cond.graph();
  throw_if_error(cond.returns({g.add("Greater", {values[kToGo], i64_constant(g, 0)})}));
  value_or_throw(cond.finish());
  return cond.name();
}

// Repeats until the shapes of the gradients hold in all iterations.
std::string ReverseLoop::make_body() {
  for (;;) {
    Body body(c_.g, loop_.function() + "_grad", loop_.loop().site, true);
    const std::vector<Output> next = build_body(body);
    bool kept = true;
    for (std::size_t v = 0; v < variables_; ++v) {
      ValueType& type = arguments_[v].type;
      TROUPE_CHECK(next[v].dtype() == type.dtype, "a gradient is of the type of its value");
      if (keeps(type, {next[v].dtype(), next[v].shape()})) continue;
      type.shape = common_shape(type.shape, next[v].shape());
      kept = false;
    }
    if (!kept) continue;
    throw_if_error(body.returns(next));
    value_or_throw(body.finish());
    return body.name();
  }
}

std::vector<Output> ReverseLoop::build_body(Body& body) const {
  const std::vector<Output> values = declare(body);
  GraphBuilder& g = body.graph();
  TapeCopies copies(loop_.builder(), g, [](Port) -> Output {
    TROUPE_CHECK(false, "what an iteration takes was found before");
    return {};
  });
  std::vector<Output> next(variables_);
  next[kToGo] = g.add("Sub", {values[kToGo], i64_constant(g, 1)});
  // Functions that the body calls rely on the shapes of their arguments.
  const std::set<NodeId>& nodes = iteration_.copied;
  const bool calls_again = std::any_of(nodes.begin(), nodes.end(), [&](NodeId id) {
    return loop_.is_of_body(id) && loop_.op_of(id).role == Role::call;
  });
  for (std::size_t a = kToGo + 1; a < arguments_.size(); ++a) {
    const Argument& argument = arguments_[a];
    Output value = values[a];
    if (argument.element.dtype != DType::invalid) {
      const Op popped =
          g.add({.op = "ListPop",
                 .inputs = {value},
                 .attrs = {{"T", argument.element.dtype}, {"shape", argument.element.shape}},
                 .name = "saved"});
      next[a] = popped.output(0);
      value = popped.output(1);
    } else if (calls_again && value.dtype() != DType::resource && value.dtype() != DType::list &&
               argument.known.known_rank()) {
      value = g.add("EnsureShape", {value}, {{"shape", argument.known}});
    }
    copies.map(argument.stands_for, value);
  }
  for (NodeId id : nodes) copies.copy(id);
  for (std::size_t r = 0; r < iteration_.results.size(); ++r)
    next[kToGo + 1 + r] = copies.value(iteration_.results[r].value.port());
  return next;
}

}  // namespace troupe::detail
