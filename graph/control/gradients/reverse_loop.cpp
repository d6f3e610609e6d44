// The loop that goes backwards: its arguments, its condition and its body.
#include <algorithm>
#include <map>
#include <utility>

#include "graph/control/gradients/detail/loop_gradient.hpp"
#include "graph/detail/value_type.hpp"

namespace troupe::detail {
namespace {

constexpr std::size_t kToGo = 0;  // of its variables: iterations

Output i64_constant(GraphBuilder& g, std::int64_t value) {
  return g.add("Const", {}, {{"T", DType::i64}, {"value", Tensor::scalar(value)}});
}

// The list of an attribute, or where there is none one entry without a name.
template <class T>
void append_attr(std::vector<T>& to, const NodeDef& node, const char* name) {
  const auto at = node.attrs.find(name);
  if (at == node.attrs.end()) return to.push_back(T());
  const auto& list = *at->second.template get<std::vector<T>>();
  to.insert(to.end(), list.begin(), list.end());
}

}  // namespace

// --- arguments ---

void LoopGradient::list_arguments() {
  const PartialShape scalar = PartialShape::scalar();
  arguments_.push_back(
      {"to_go", {DType::i64, scalar}, c_.g.add(kSavedTripsOp, {c_.y.back()}), {}, {}});
  for (const Result& result : results_) {
    const bool variable = result.input < variables_;
    Output first = variable ? c_.dy[result.input] : Output();
    ValueType type = type_of(result.argument);
    if (first.empty() && !variable && c_.x[result.input].dtype() == DType::resource)
      first = zeros_of_variable(c_.g, c_.x[result.input], type.dtype);
    if (first.empty()) first = zero_gradient(variable ? c_.y[result.input] : c_.x[result.input]);
    type.shape = common_shape(type.shape, first.shape());
    arguments_.push_back({variable ? "dy" : "sum", type, first, result.argument, {}});
  }
  add_lists();
  reverse_variables_ = reverses_ = arguments_.size();
  arguments_.push_back({"saved", {DType::resource, {}}, c_.y.back(), {}, {}});
  add_invariants();
  // Who moves the loop to a gradient function may know less of shapes.
  if (c_.g.is_tape())
    for (Argument& argument : arguments_)
      argument.known = std::exchange(argument.type.shape, PartialShape::unknown());
}

void LoopGradient::add_lists() {
  for (const Inner& inner : inner_) {
    const ValueType element = type_of(inner.value);
    const PartialShape shape = common_shape(element.shape, inner.gradients.shape());
    arguments_.push_back({"dys", {DType::list, shape}, inner.gradients, inner.dy, element});
  }
  for (Port p : from_run_) {
    if (is_invariant(p.node) || dtype(p) == DType::resource) continue;
    const ValueType element = type_of(p);
    arguments_.push_back({"values", {DType::list, element.shape}, values_of(p), p, element});
  }
}

void LoopGradient::add_invariants() {
  for (Port p : from_run_) {
    if (is_invariant(p.node)) {
      const Output& x = c_.x[input_of(p.node)];
      const bool handle = x.dtype() == DType::resource;
      const PartialShape shape = handle ? PartialShape::unknown() : x.shape();
      arguments_.push_back({"x", {x.dtype(), shape}, x, p, {}});
    } else if (dtype(p) == DType::resource) {
      arguments_.push_back({"saved", {DType::resource, {}}, run_of(p), p, {}});
    }
  }
}

// By iteration. What an iteration has of a loop inside is a list, or a number, itself.
Output LoopGradient::values_of(Port p) const {
  const bool inside = p.node >= tape_.end;
  const NodeDef& reader = g_.node(p.node);
  const Port of = inside ? reader.inputs[0] : p;
  std::vector<std::string> functions{function_}, nodes{g_.node(of.node).name};
  std::vector<std::int64_t> ports{of.index};
  DType element = dtype(p);
  if (inside) {
    const auto at = reader.attrs.find("T");
    element = at == reader.attrs.end() ? DType::i64 : *at->second.get<DType>();
    append_attr(functions, reader, "functions");
    append_attr(nodes, reader, "nodes");
    append_attr(ports, reader, "ports");
  }
  NodeSpec spec{.op = std::string(kSavedListOp), .inputs = {c_.y.back()}};
  spec.attrs = {{"T", element},
                {"shape", type_of(p).shape},
                {"functions", functions},
                {"nodes", nodes},
                {"ports", ports}};
  return c_.g.add(std::move(spec)).output();
}

// What a call in the body saved: of another run in each iteration.
Output LoopGradient::run_of(Port p) const {
  NodeSpec spec{.op = std::string(kSavedOp), .inputs = {c_.y.back()}};
  spec.attrs = {{"T", DType::resource},         {"shape", PartialShape::unknown()},
                {"function", function_},        {"branch", std::int64_t{1}},
                {"node", g_.node(p.node).name}, {"port", std::int64_t(p.index)}};
  return c_.g.add(std::move(spec)).output();
}

// --- functions ---

std::vector<Output> LoopGradient::declare(Body& body) const {
  std::vector<Output> values;
  for (const Argument& argument : arguments_)
    values.push_back(value_or_throw(body.argument(argument.type, argument.name)));
  return values;
}

std::string LoopGradient::make_condition() const {
  Body cond(c_.g, function_ + "_grad_cond", loop_.site, true);
  const std::vector<Output> values = declare(cond);
  GraphBuilder& g = cond.graph();
  throw_if_error(cond.returns({g.add("Greater", {values[kToGo], i64_constant(g, 0)})}));
  value_or_throw(cond.finish());
  return cond.name();
}

// What is known of the gradients' shapes in each iteration is what all of them keep.
std::string LoopGradient::make_body() {
  for (;;) {
    Body body(c_.g, function_ + "_grad", loop_.site, true);
    const std::vector<Output> next = build_body(body);
    bool kept = true;
    for (std::size_t v = 0; v < reverse_variables_; ++v) {
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

std::vector<Output> LoopGradient::build_body(Body& body) const {
  const std::vector<Output> values = declare(body);
  GraphBuilder& g = body.graph();
  std::map<Port, Output> here;
  std::map<NodeId, Op> moved;
  std::vector<Output> next(reverse_variables_);
  next[kToGo] = g.add("Sub", {values[kToGo], i64_constant(g, 1)});
  // Functions of the body count on the shapes of their arguments.
  const bool calls_again = std::any_of(moved_.begin(), moved_.end(), [&](NodeId id) {
    return id < tape_.end && op_of(id).role == Role::call;
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
    here.emplace(argument.stands_for, value);
  }
  auto value_of = [&](Port p) {
    if (auto at = here.find(p); at != here.end()) return at->second;
    const Tensor* known = small_constant(g_, p);
    TROUPE_CHECK(known, "what an iteration takes was found before");
    return here.emplace(p, clone_constant(g, g_, p, *known)).first->second;
  };
  for (NodeId id : moved_) {
    const NodeDef& node = g_.node(id);
    std::vector<Output> inputs;
    for (Port p : node.inputs) inputs.push_back(value_of(p));
    NodeSpec spec = moved_node(g_, id, std::move(inputs));
    for (NodeId c : node.control)
      if (auto at = moved.find(c); at != moved.end()) spec.control.push_back(at->second);
    const Op made = moved.emplace(id, g.add(std::move(spec))).first->second;
    for (std::uint32_t k = 0; k < node.out_types.size(); ++k)
      here.emplace(Port{id, k}, made.output(int(k)));
  }
  for (std::size_t r = 0; r < results_.size(); ++r)
    next[kToGo + 1 + r] = value_of(results_[r].value.port());
  return next;
}

}  // namespace troupe::detail
