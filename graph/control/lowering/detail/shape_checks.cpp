#include "graph/control/lowering/detail/shape_checks.hpp"

#include "graph/control/functions/ops.hpp"

namespace troupe::detail {
namespace {

std::string variable_text(const NodeDef& loop, std::size_t variable) {
  return "variable " + std::to_string(variable) + " of the loop " + called(loop);
}

}  // namespace

Expected<Value> ShapeChecks::argument(const FunctionDef& f, std::size_t i, const Value& value,
                                      const Place& place) {
  const std::string number = std::to_string(i);
  return ensured(value, f.nodes[f.arguments[i]].out_shapes[0],
                 {"argument_" + number, "argument " + number + " of " + called(f), place.site},
                 place);
}

Expected<Value> ShapeChecks::result(const FunctionDef& f, std::size_t k, const Value& value,
                                    const Place& place) {
  const NodeDef& node = f.nodes[f.results[k].node];
  const std::string number = std::to_string(k);
  return ensured(value, f.result_shapes[k],
                 {"result_" + number, "result " + number + " of " + called(f) + ", " + called(node),
                  node.site},
                 place);
}

Expected<Value> ShapeChecks::saved(const NodeDef& node, const Value& value, const Place& place) {
  return ensured(value, node.out_shapes[0],
                 {node.name + "/shape", called(node) + ", which a gradient takes", node.site},
                 place);
}

Status ShapeChecks::first_variables(const NodeDef& loop, const FunctionDef& body,
                                    std::vector<Value>& arguments, const Place& before) {
  for (std::size_t v = 0; v < loop_variables(loop) && v < arguments.size(); ++v) {
    TROUPE_TRY(arguments[v], ensured(arguments[v], body.nodes[body.arguments[v]].out_shapes[0],
                                     {"variable_" + std::to_string(v),
                                      variable_text(loop, v) + ", at first", loop.site},
                                     before));
  }
  return ok_status();
}

Status ShapeChecks::next_variables(const NodeDef& loop, Inlined& iteration, const Place& frame) {
  const FunctionDef& body = *iteration.function;
  for (std::size_t v = 0; v < iteration.results.size(); ++v) {
    const NodeDef& made = body.nodes[body.results[v].node];
    TROUPE_TRY(iteration.results[v],
               ensured(iteration.results[v], body.nodes[body.arguments[v]].out_shapes[0],
                       {"variable_" + std::to_string(v),
                        variable_text(loop, v) + ", whose next value is " + called(made) + " of " +
                            called(body),
                        made.site},
                       frame));
  }
  return ok_status();
}

Expected<Value> ShapeChecks::ensured(const Value& value, const PartialShape& declared, Check check,
                                     const Place& place) {
  if (value.run != kNoRun) return value;
  const NodeDef& source = out_.node(value.port.node);
  const DType type = out_.dtype(value.port);
  // Elements of a list are checked when they are popped.
  if (out_.is_handle(value) || type == DType::list) return value;
  const PartialShape& is = out_.shape(value.port);
  auto both = PartialShape::merge(declared, is);
  if (both.ok() && *both == is) return value;
  TROUPE_TRY(out_.ops().lookup(kEnsuredOp));
  NodeDef node;
  node.name = place.prefix + check.name;
  node.op = kEnsuredOp;
  node.site = std::move(check.site);
  node.replica = place.replica;
  // Placed where the value is made.
  if (source.op == kFeedOp) {
    node.device = place.device;
    node.colocate = place.colocate;
    if (!place.loop.empty()) node.colocate.push_back(place.loop);
  } else {
    node.device = source.device;
    if (!place.loop.empty()) node.colocate = {source.name};
  }
  node.attrs = {{"T", type}, {"shape", declared}, {"message", std::move(check.message)}};
  node.inputs = {value.port};
  node.out_types = {type};
  node.out_shapes = {both.ok() ? *both : declared};
  out_.anchor(node, {value}, place);
  return Value{{out_.append(std::move(node)), 0}, place.pivot, true};
}

}  // namespace troupe::detail
