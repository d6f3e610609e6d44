#include "graph/control/functions/calls.hpp"

#include <set>
#include <unordered_set>
#include <utility>
#include <vector>

#include "core/name.hpp"
#include "graph/control/functions/ops.hpp"
#include "graph/detail/node_check.hpp"
#include "graph/detail/value_type.hpp"
#include "graph/node_query.hpp"

namespace troupe {

using detail::may_keep;
using detail::typed;

namespace {

template <class T>
const T* attr(const NodeDef& node, std::string_view name) {
  auto at = node.attrs.find(name);
  return at == node.attrs.end() ? nullptr : at->second.get<T>();
}

bool names_functions(const NodeDef& call) {
  if (call.op == "Call") return attr<std::string>(call, "function");
  if (call.op == "If")
    return attr<std::string>(call, "then_branch") && attr<std::string>(call, "else_branch");
  if (call.op == "While")
    return attr<std::string>(call, "cond") && attr<std::string>(call, "body") &&
           attr<std::int64_t>(call, "variables");
  const auto* branches = attr<std::vector<std::string>>(call, "branches");
  return branches && !branches->empty();
}

Status check_arguments(const FunctionDef& f, const std::vector<ValueType>& arguments) {
  const std::string where = "function '" + f.name + "' (" + f.site.text() + ")";
  if (arguments.size() != f.arguments.size())
    return invalid_argument(where + " takes " + std::to_string(f.arguments.size()) +
                            " arguments, not " + std::to_string(arguments.size()));
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    const NodeDef& argument = f.nodes[f.arguments[i]];
    const bool handle = argument.op != kArgumentOp;
    const ValueType wanted{argument.out_types[0], argument.out_shapes[0]};
    if (handle ? arguments[i].dtype == DType::resource : may_keep(wanted, arguments[i])) continue;
    return invalid_argument(where + ": argument '" + argument.name + "' is " + typed(wanted) +
                            ", but " + typed(arguments[i]) + " is passed");
  }
  return ok_status();
}

// "'x' (a.cpp:3)", for result i of a function.
std::string result_text(const FunctionDef& f, std::size_t i) {
  if (i >= f.results.size()) return "function '" + f.name + "' (" + f.site.text() + ")";
  const NodeDef& node = f.nodes[f.results[i].node];
  return "'" + node.name + "' (" + node.site.text() + ")";
}

// Joins the results of all functions: the types must be equal, and `shapes` hold for all.
Status join_results(const FunctionDef& first, const FunctionDef& f,
                    std::vector<PartialShape>& shapes) {
  if (f.result_types.size() != first.result_types.size())
    return invalid_argument("the branches return different numbers of values: '" + first.name +
                            "' (" + first.site.text() + ") " +
                            std::to_string(first.result_types.size()) + ", '" + f.name + "' (" +
                            f.site.text() + ") " + std::to_string(f.result_types.size()));
  for (std::size_t i = 0; i < shapes.size(); ++i) {
    if (f.result_types[i] != first.result_types[i])
      return invalid_argument(
          "result " + std::to_string(i) + " is " + std::string(dtype_name(first.result_types[i])) +
          " in one branch, " + result_text(first, i) + ", and " +
          std::string(dtype_name(f.result_types[i])) + " in another, " + result_text(f, i));
    shapes[i] = common_shape(shapes[i], f.result_shapes[i]);
  }
  return ok_status();
}

// The condition must return one bool, the body the next values of the variables.
Status check_loop(const NodeDef& loop, const FunctionDef& cond, const FunctionDef& body) {
  const std::string where = "function '" + cond.name + "' (" + cond.site.text() + ")";
  if (cond.result_types.size() != 1 || cond.result_types[0] != DType::bool_ ||
      !cond.result_shapes[0].accepts(Shape{}))
    return invalid_argument("the condition of a loop is one bool, which " + where +
                            " does not return");
  const auto* window = attr<std::int64_t>(loop, "window");
  if (window && (*window < 1 || *window > kWidestWindow))
    return invalid_argument("`window` is " + std::to_string(*window) + ", not one of 1 to " +
                            std::to_string(kWidestWindow));
  const std::int64_t variables = *attr<std::int64_t>(loop, "variables");
  if (variables < 0 || std::size_t(variables) != body.result_types.size() ||
      std::size_t(variables) > body.arguments.size())
    return invalid_argument("the loop has " + std::to_string(variables) + " variables, of which '" +
                            body.name + "' (" + body.site.text() + ") takes " +
                            std::to_string(body.arguments.size()) + " and returns " +
                            std::to_string(body.result_types.size()));
  for (std::size_t v = 0; v < std::size_t(variables); ++v)
    for (const FunctionDef* f : {&cond, &body}) {
      const NodeDef& argument = f->nodes[f->arguments[v]];
      const ValueType wanted{argument.out_types[0], argument.out_shapes[0]};
      const ValueType is{body.result_types[v], body.result_shapes[v]};
      if (argument.op == kArgumentOp && may_keep(wanted, is)) continue;
      return invalid_argument("variable " + std::to_string(v) + " of the loop is " + typed(wanted) +
                              ", but its next value, " + result_text(body, v) + ", is " +
                              typed(is) +
                              "; a dimension that changes is declared as -1, as in while_loop(..., "
                              "{.shapes = {{}, {-1, 64}}})");
    }
  return ok_status();
}

// The results of a While: its variables, with the shapes of the body's arguments.
Status loop_results(const NodeDef& loop, const FunctionDef& cond, const FunctionDef& body,
                    std::vector<PartialShape>& shapes) {
  TROUPE_TRY(check_loop(loop, cond, body));
  shapes.clear();
  for (std::size_t v = 0; v < body.result_types.size(); ++v)
    shapes.push_back(body.nodes[body.arguments[v]].out_shapes[0]);
  return ok_status();
}

}  // namespace

Status check_call(NodeDef& call, const std::vector<ValueType>& arguments, FindFunction find) {
  if (!names_functions(call)) return invalid_argument(call.op + " names no function");
  const FunctionDef* first = nullptr;
  std::vector<PartialShape> shapes;
  const std::vector<std::string> names = functions_of(call);
  if (names.size() > detail::kMaxPorts)
    return invalid_argument(call.op + ": " + std::to_string(names.size()) +
                            " branches are too many");
  std::unordered_set<std::string_view> seen;  // a function may be the branch for many indices
  for (const std::string& name : names) {
    if (!seen.insert(name).second && call.op != "While") continue;
    const FunctionDef* f = find(name);
    if (!f) return not_found(call.op + ": there is no function " + quoted(name));
    TROUPE_TRY(check_arguments(*f, arguments));
    if (call.op == "While" && first) {
      TROUPE_TRY(loop_results(call, *first, *f, shapes));
      first = f;
      break;
    }
    if (!first) first = f, shapes = f->result_shapes;
    TROUPE_TRY(join_results(*first, *f, shapes));
  }
  auto given = [&](const char* name, Attr is) {
    auto [at, added] = call.attrs.try_emplace(name, is);
    if (at->second == is) return ok_status();
    return invalid_argument(call.op + ": `" + name + "` is " + at->second.text() +
                            ", where the functions return " + is.text());
  };
  TROUPE_TRY(given("Tout", Attr(first->result_types)));
  return given("shapes", Attr(std::move(shapes)));
}

bool writes_input(const GraphDef& graph, const OpRegistry& ops, const NodeDef& call,
                  std::size_t input) {
  std::set<std::pair<std::string, std::size_t>> seen;
  std::vector<std::pair<const NodeDef*, std::size_t>> open{{&call, input}};
  while (!open.empty()) {
    const auto [node, at] = open.back();
    open.pop_back();
    if (at < selectors(*node)) continue;
    const std::size_t argument = at - selectors(*node);
    for (const std::string& name : functions_of(*node)) {
      const FunctionDef* f = graph.function(name);
      if (!f || argument >= f->arguments.size() || !seen.insert({name, argument}).second) continue;
      for (const NodeDef& inner : f->nodes)
        for (std::size_t i = 0; i < inner.inputs.size(); ++i) {
          if (inner.inputs[i].node != f->arguments[argument]) continue;
          const OpInfo& op = op_of(inner, ops);
          if (op.is(External::Order::write)) return true;
          if (op.def.role == Role::call) open.emplace_back(&inner, i);
        }
    }
  }
  return false;
}

}  // namespace troupe
