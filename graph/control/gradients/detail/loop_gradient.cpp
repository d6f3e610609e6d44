#include "graph/control/gradients/detail/loop_gradient.hpp"

#include <algorithm>

#include "graph/control/functions/calls.hpp"
#include "graph/control/gradients/detail/recursive_gradient.hpp"
#include "graph/control/gradients/detail/reverse_loop.hpp"
#include "graph/control/gradients/detail/tape_copies.hpp"
#include "graph/control/lowering/deadness.hpp"
#include "graph/detail/partial_gradient.hpp"
#include "graph/node_query.hpp"

namespace troupe::detail {
namespace {

// The longest chain of nodes that is recomputed rather than saved.
constexpr int kMostMadeAgain = 8;

Status kept_from_switch(const NodeDef& node) {
  return unimplemented("the gradient of the loop needs '" + node.name +
                       "', which a Switch may leave without a value; use cond in loops")
      .at(node.site);
}

// sum + gradient, in place if the gradient is zero outside of one part. The sum is wide().
Output add_gradient(const Output& sum, const Output& gradient) {
  GraphBuilder& g = sum.graph();
  if (!op_that_adds(gradient).empty()) return g.add(added_to(sum, gradient)).output();
  const NodeDef node = g.node(gradient.node());
  const bool in_parts = std::any_of(node.inputs.begin(), node.inputs.end(),
                                    [&](Port p) { return !op_that_adds(Output(&g, p)).empty(); });
  if (node.op != "AddN" || !in_parts)
    return g.add(sum.dtype() == DType::list ? "ListAddN" : "AddN",
                 {sum, of_dtype(gradient, sum.dtype())});
  Output all = sum;
  for (Port p : node.inputs) all = add_gradient(all, Output(&g, p));
  return all;
}

template <class T>
std::vector<T> without_first(const NodeDef& node, const char* name) {
  std::vector<T> list = *node.attrs.at(name).get<std::vector<T>>();
  list.erase(list.begin());
  return list;
}

}  // namespace

LoopGradient::LoopGradient(GradContext& c)
    : c_(c),
      loop_(c.g, c.node()),
      saves_values_(*loop_.loop().attrs.at("save").get<std::string>() == "values"),
      tape_(loop_.tape()),
      g_(loop_.builder()) {}

std::vector<Output> LoopGradient::run() {
  const Differentiating now(*c_.g.root().function(loop_.function()));
  name_inner_values();
  find_flows();
  differentiate();
  std::vector<Output> dx(c_.x.size());
  if (out_.results.empty()) return dx;
  find_needed();
  const Op made = ReverseLoop(c_, loop_, out_).make();
  for (std::size_t r = 0; r < out_.results.size(); ++r)
    dx[out_.results[r].input] = of_dtype(made.output(int(r) + 1), out_.results[r].dtype);
  return dx;
}

// --- nodes of the body ---

// Whether gradients flow to the input as a handle, of a variable here or in an outer graph. A
// loop's `saved` output is none.
bool LoopGradient::takes_variable(std::size_t input) const {
  return c_.wanted[input] && loop_.dtype(tape_.inputs[input]) == DType::resource &&
         c_.g.node(c_.x[input].node()).op != "While";
}

// An error if the input is a variable that the loop writes: no gradient flows through a write.
Status LoopGradient::written(std::size_t input) const {
  const NodeId handle = tape_.inputs[input].node;
  if (!loop_.is_variable_handle(handle) ||
      !writes_input(c_.g.root().def(), g_.registry(), loop_.loop(), input))
    return ok_status();
  Site site = loop_.loop().site;
  for (NodeId id = tape_.end; id-- > 0;)
    if (const NodeDef& node = g_.node(id); !node.inputs.empty() && node.inputs[0].node == handle &&
                                           loop_.op_of(id).external.order == External::Order::read)
      site = node.site;
  return invalid_argument("gradients: the loop '" + loop_.loop().name + "' reads '" +
                          g_.node(handle).name +
                          "' and writes it, and no gradient flows back through a write; hold it "
                          "constant (StopGradient), or differentiate inside of the body")
      .at(site);
}

// Whether the node reads tensors that a loop in the body saved.
bool LoopGradient::reads_inner_values(NodeId id) const {
  const NodeDef& node = g_.node(id);
  return id >= tape_.end && loop_.op_of(id).role == Role::saved && node.op != kSavedOp &&
         node.inputs[0].node < tape_.end && loop_.is_saved(node.inputs[0]);
}

// --- the gradients ---

void LoopGradient::name_inner_values() {
  for (const GradContext::OfSaved& of : c_.of_saved) {
    const NodeDef reader = c_.g.node(of.node);
    if (!carries_gradient(*reader.attrs.at("T").get<DType>())) continue;
    const auto& nodes = *reader.attrs.at("nodes").get<std::vector<std::string>>();
    const auto& ports = *reader.attrs.at("ports").get<std::vector<std::int64_t>>();
    Output value = g_.find(nodes[0]).output(int(ports[0]));
    if (nodes.size() > 1) {
      AttrMap attrs = reader.attrs;
      attrs.insert_or_assign("functions", Attr(without_first<std::string>(reader, "functions")));
      attrs.insert_or_assign("nodes", Attr(without_first<std::string>(reader, "nodes")));
      attrs.insert_or_assign("ports", Attr(without_first<std::int64_t>(reader, "ports")));
      value = g_.add(kSavedListOp, {value}, std::move(attrs));
    }
    out_.inner.push_back({value.port(), of.gradient, {}});
  }
}

// Finds the variables with a gradient: those read after the loop, those that these are computed
// from in an iteration, and so on. Includes unused arguments of calls in the body; they get zeros.
void LoopGradient::find_flows() {
  flows_.assign(loop_.variables(), false);
  reached_.assign(g_.def().nodes.size(), false);
  for (std::size_t v = 0; v < loop_.variables(); ++v)
    if (!c_.dy[v].empty()) flow_to(v);
  for (const IterationGradient::Inner& inner : out_.inner) reach(inner.value);
}

void LoopGradient::flow_to(std::size_t variable) {
  if (flows_[variable] || !carries_gradient(loop_.dtype(tape_.outputs[variable]))) return;
  flows_[variable] = true;
  reach(tape_.outputs[variable]);
}

void LoopGradient::reach(Port port) {
  std::vector<Port> open{port};
  while (!open.empty()) {
    const Port p = open.back();
    open.pop_back();
    if (reached_[p.node] || (!carries_gradient(loop_.dtype(p)) && !loop_.is_saved(p))) continue;
    reached_[p.node] = true;
    const OpDef& op = loop_.op_of(p.node);
    if (const std::size_t input = loop_.input_of(p.node); input < loop_.variables())
      flow_to(input);
    else if (op.no_gradient.empty())
      for (Port in : g_.node(p.node).inputs) open.push_back(in);
  }
}

void LoopGradient::differentiate() {
  std::vector<Output> ys, dys, xs;
  auto dy_of = [&](Port y, PartialShape shape) {
    ys.emplace_back(&g_, y);
    dys.push_back(add_argument(g_, {loop_.dtype(y), std::move(shape)}, "dy"));
    return dys.back().port();
  };
  for (std::size_t v = 0; v < loop_.variables(); ++v)
    if (flows_[v]) {
      out_.results.push_back(
          {v, dy_of(tape_.outputs[v], loop_.type_of(tape_.inputs[v]).shape), {}});
      xs.push_back(tape_.input(v));
    }
  for (IterationGradient::Inner& inner : out_.inner)
    inner.dy = dy_of(inner.value, loop_.type_of(inner.value).shape);
  std::set<std::string> variables;
  for (std::size_t i = loop_.variables(); i < tape_.inputs.size(); ++i)
    if ((c_.wanted[i] && carries_gradient(loop_.dtype(tape_.inputs[i]))) ||
        (takes_variable(i) && is_first_of_variable(tape_.input(i), variables))) {
      out_.results.push_back({i, {}, {}});
      xs.push_back(tape_.input(i));
    }
  if (xs.empty()) return;
  const std::vector<Output> dx = value_or_throw(gradients(ys, xs, dys));
  auto scope = g_.with_scope("gradients");
  for (std::size_t r = 0; r < out_.results.size(); ++r) {
    IterationGradient::Result& result = out_.results[r];
    result.value = dx[r];
    if (result.input < loop_.variables()) {
      if (dx[r].empty()) result.value = zero_gradient(xs[r]);
    } else if (!dx[r].empty()) {
      throw_if_error(written(result.input));
      const Output sum = add_argument(g_, {wide(dx[r].dtype()), xs[r].shape()}, "sum");
      result.argument = sum.port();
      result.value = add_gradient(sum, dx[r]);
    }
    if (!result.value.empty()) result.dtype = (dx[r].empty() ? result.value : dx[r]).dtype();
  }
  std::erase_if(out_.results,
                [](const IterationGradient::Result& result) { return result.value.empty(); });
}

// --- nodes of an iteration ---

// Walks back from the gradients to values that exist already: their arguments, and values of the
// body.
void LoopGradient::find_needed() {
  // Nodes on one side of a client's Switch. Branches of functions are not included.
  const std::vector<bool> dying = nodes_with_dead_outputs(g_.def().nodes, g_.registry());
  std::set<Port> there;
  for (const IterationGradient::Result& result : out_.results) there.insert(result.argument);
  for (const IterationGradient::Inner& inner : out_.inner) there.insert(inner.dy);
  std::vector<Port> open;
  for (const IterationGradient::Result& result : out_.results) open.push_back(result.value.port());
  while (!open.empty()) {
    const Port p = open.back();
    open.pop_back();
    if (there.contains(p) || small_constant(g_, p)) continue;
    const bool anew = p.node < tape_.end ? is_made_again(p.node, 0)
                                         : !reads_inner_values(p.node) ||
                                               is_computed_again(g_.node(p.node).inputs[0].node);
    if (!anew) {
      if (dying[p.node]) throw Error(kept_from_switch(g_.node(p.node)));
      out_.from_run.insert(p);
    } else if (out_.copied.insert(p.node).second) {
      for (Port in : g_.node(p.node).inputs) open.push_back(in);
    }
  }
}

// Whether the node is recomputed rather than saved: it is cheap and invariant or, if the loop saves
// only its variables, it can be recomputed.
bool LoopGradient::is_made_again(NodeId id, int depth) const {
  if (!saves_values_) return is_computed_again(id);
  const NodeDef& node = g_.node(id);
  const OpDef& op = loop_.op_of(id);
  if (!op.cheap || op.stateful || op.role != Role::kernel || depth == kMostMadeAgain ||
      node.inputs.empty() || !node.control.empty())
    return false;
  return std::all_of(node.inputs.begin(), node.inputs.end(), [&](Port in) {
    return small_constant(g_, in) || loop_.is_invariant(in.node) ||
           is_made_again(in.node, depth + 1);
  });
}

// Whether the node can be recomputed without a visible effect. Nodes that take or return
// lists are not: elements live as long as their lists anyway.
bool LoopGradient::is_computed_again(NodeId id) const {
  const NodeDef& node = g_.node(id);
  const auto is_list = [&](Port in) { return loop_.dtype(in) == DType::list; };
  if (saves_values_ || node.inputs.empty() ||
      std::any_of(node.inputs.begin(), node.inputs.end(), is_list) ||
      std::count(node.out_types.begin(), node.out_types.end(), DType::list) > 0)
    return false;
  return repeats_well(node);
}

// Neither the node nor what it calls has effects, draws random numbers or makes requests; and it is
// not a gradient, which needs the values that its function saved.
bool LoopGradient::repeats_well(const NodeDef& node) const {
  const OpDef& op = g_.registry().find(node.op)->def;
  if (op.role == Role::argument) return true;
  if (op.role == Role::kernel) return !op.stateful && !op.random;
  const auto reverses = node.attrs.find("reverses");
  const bool goes_back =
      reverses != node.attrs.end() && *reverses->second.get<std::int64_t>() != -1;
  if (op.role != Role::call || goes_back) return false;
  const std::vector<std::string> functions = functions_of(node);
  return std::all_of(functions.begin(), functions.end(), [&](const std::string& name) {
    const FunctionDef* function = c_.g.root().def().function(name);
    return function != nullptr && !calls_itself(c_.g, name) &&
           std::all_of(function->nodes.begin(), function->nodes.end(),
                       [&](const NodeDef& inner) { return repeats_well(inner); });
  });
}

}  // namespace troupe::detail
