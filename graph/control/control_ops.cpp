#include "graph/control/control_ops.hpp"

#include "graph/builder.hpp"
#include "graph/control/functions/ops.hpp"
#include "graph/control/gradients/gradients.hpp"
#include "graph/control/paper_loops/loop_ops.hpp"
#include "graph/passes/shape_inference.hpp"

namespace troupe {
namespace {

const std::string kValues(kValueTypes);
// The types of values passed into a body, including resource handles.
const std::string kPassed = kValues + " resource";

Status switch_shape(InferenceContext& c) {
  if (c.outputs() == 0) return invalid_argument("there is no output");
  TROUPE_TRY(c.want_rank(1, 0));
  return same_shape(c);
}

Status merge_shape(InferenceContext& c) {
  PartialShape shape = c.shape(0);
  for (int i = 1; i < c.inputs(); ++i) shape = common_shape(shape, c.shape(i));
  c.set(0, std::move(shape));
  c.set(1, PartialShape::scalar());
  return ok_status();
}

Status declared_shape(InferenceContext& c) {
  c.set(0, c.shape_attr("shape"));
  return ok_status();
}

// The results are those of the functions; whatever adds the node writes their shapes into `shapes`.
Status call_shape(InferenceContext& c) {
  const auto* shapes = c.attrs().at("shapes").get<std::vector<PartialShape>>();
  if (int(shapes->size()) + 1 != c.outputs())
    return invalid_argument("`shapes` has " + std::to_string(shapes->size()) + " entries for " +
                            std::to_string(c.outputs() - 1) + " results");
  for (std::size_t i = 0; i < shapes->size(); ++i) c.set(int(i), (*shapes)[i]);
  return ok_status();
}

Status selected_shape(InferenceContext& c) {
  TROUPE_TRY(c.want_rank(0, 0));
  return call_shape(c);
}

// Only one output is live, so dx is the Merge of both gradients.
std::vector<Output> switch_gradient(GradContext& c) {
  std::vector<Output> dx(2);
  dx[0] = c.g.add(NodeSpec{.op = "Merge", .inputs = c.dy}).output();
  return dx;
}

// The gradient goes to the input that was taken.
std::vector<Output> merge_gradient(GradContext& c) {
  return c.g
      .add(NodeSpec{
          .op = "SwitchN", .inputs = {c.dy[0], c.y[1]}, .attrs = {{"N", std::int64_t(c.x.size())}}})
      .outputs();
}

OpDef call_op(std::string name, std::string selector, std::vector<std::string> attrs,
              std::string doc) {
  OpDef def{.name = std::move(name), .out = {"results: Tout...", "saved: resource"}};
  if (!selector.empty()) def.in.push_back(std::move(selector));
  def.in.push_back("arguments: Tin...");
  def.attrs = {"Tin: list(type) {" + kPassed + "}", "Tout: list(type) {" + kValues + "}",
               "shapes: list(shape)"};
  def.attrs.insert(def.attrs.end(), attrs.begin(), attrs.end());
  def.shape = def.in.size() > 1 ? selected_shape : call_shape;
  def.grad = call_gradient;
  def.stateful = true;
  def.role = Role::call;
  def.doc = std::move(doc);
  return def;
}

OpDef while_op() {
  OpDef def = call_op(
      "While", "",
      {"cond: string", "body: string", "variables: int", "reverses: int = -1", "window: int = 10",
       "save: string {values variables} = values"},
      "The loop variables (the first `variables` arguments) after the loop: as long as cond is "
      "true of all arguments, body computes their next values from all arguments. Argument "
      "`reverses`, if any, is the handle of a loop whose iterations this one goes through from the "
      "last to the first. On several devices, up to `window` iterations run at once. The gradient "
      "needs values of the body: they are saved, or, if `save` is \"variables\", recomputed from "
      "the loop variables.");
  def.grad = loop_gradient;
  return def;
}

// The gradient goes to the loop that saved the values; the loop's own gradient uses it.
std::vector<Output> saved_list_gradient(GradContext& c) { return {c.dy[0]}; }

std::vector<OpDef> primitives() {
  return {{.name = "Switch",
           .in = {"x", "predicate: bool"},
           .out = {"when_false", "when_true"},
           .types = kValues,
           .shape = switch_shape,
           .grad = switch_gradient,
           .role = Role::switch_,
           .doc = "Passes x to the output that the scalar predicate selects. The other output is "
                  "dead, and so is everything that needs it, up to a Merge."},
          {.name = "SwitchN",
           .in = {"x", "index: Tidx"},
           .out = {"cases: T..."},
           .types = kValues,
           .attrs = {"Tidx: type {i32 i64} = i32"},
           .shape = switch_shape,
           .grad = switch_gradient,
           .role = Role::switch_,
           .doc = "Switch with N outputs. An index out of range selects the last one."},
          {.name = "Merge",
           .in = {"values: T..."},
           .out = {"y", "index: i32"},
           .types = kValues,
           .shape = merge_shape,
           .grad = merge_gradient,
           .host = {"index"},
           .role = Role::merge,
           .doc = "The value that is not dead, and its index; dead if all values are."},
          {.name = "ControlTrigger",
           .shape = no_outputs,
           .no_gradient = "no outputs",
           .role = Role::control_trigger,
           .doc = "Done when its control inputs are done or dead; it is never dead itself."}};
}

}  // namespace

std::vector<OpDef> control_ops() {
  std::vector<OpDef> ops = primitives();
  ops.push_back(call_op("Call", "", {"function: string"}, "Runs a function of the graph."));
  ops.push_back(call_op("If", "predicate: bool", {"then_branch: string", "else_branch: string"},
                        "Runs one of two functions, selected by the scalar predicate."));
  ops.push_back(call_op("Case", "index: Tidx",
                        {"branches: list(string)", "Tidx: type {i32 i64} = i32"},
                        "Runs the function with that index; out of range, the last one."));
  ops.push_back(while_op());
  ops.push_back({.name = std::string(kArgumentOp),
                 .out = {"value"},
                 .types = kPassed,
                 .attrs = {"T: type", "shape: shape = ?"},
                 .shape = declared_shape,
                 .no_gradient = "no inputs",
                 .role = Role::argument,
                 .doc = "An argument of the function whose body contains this node."});
  ops.push_back({.name = std::string(kSavedOp),
                 .in = {"saved: resource"},
                 .out = {"value"},
                 .types = kPassed,
                 .attrs = {"T: type", "shape: shape = ?", "function: string", "branch: int = 0",
                           "node: string", "port: int = 0"},
                 .shape = declared_shape,
                 .no_gradient = "gradients of gradients start from the function itself",
                 .role = Role::saved,
                 .doc = "In a gradient function: a value of the forward function."});
  ops.push_back({.name = std::string(kSavedListOp),
                 .in = {"saved: resource"},
                 .out = {"values: list"},
                 .types = kValues,
                 .attrs = {"T: type", "shape: shape = ?", "functions: list(string)",
                           "nodes: list(string)", "ports: list(int)"},
                 .shape = declared_shape,
                 .grad = saved_list_gradient,
                 .role = Role::saved,
                 .doc = "The values of an output of a node in a loop's body, one for each "
                        "iteration. Of several nodes, all but the last are loops, each in the body "
                        "of the one before: a list of lists, with elements of type T at the end. "
                        "An empty last name means the number of iterations."});
  ops.push_back({.name = std::string(kSavedTripsOp),
                 .in = {"saved: resource"},
                 .out = {"trips: i64"},
                 .shape = scalar_shape,
                 .no_gradient = "a number of iterations",
                 .role = Role::saved,
                 .doc = "The number of iterations that a loop ran."});
  for (OpDef& op : loop_ops()) ops.push_back(std::move(op));
  return ops;
}

}  // namespace troupe
