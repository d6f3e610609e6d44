// A small registry for tests of graph/: enough ops to build, differentiate and break graphs.
#pragma once

#include "graph/builder.hpp"
#include "graph/control/control_ops.hpp"
#include "graph/control/functions/ops.hpp"
#include "graph/gradients.hpp"
#include "graph/op_registry.hpp"
#include "graph/passes/shape_inference.hpp"

namespace troupe::sample {

inline Status matmul_shape(InferenceContext& c) {
  TROUPE_TRY(c.want_rank(0, 2));
  TROUPE_TRY(c.want_rank(1, 2));
  PartialShape out = PartialShape::unknown_of_rank(2);
  if (c.shape(0).known_rank()) out.set_dim(0, c.shape(0)[0]);
  if (c.shape(1).known_rank()) out.set_dim(1, c.shape(1)[1]);
  if (c.shape(0).known_rank() && c.shape(1).known_rank() && c.shape(0).known(1) &&
      c.shape(1).known(0) && c.shape(0)[1] != c.shape(1)[0])
    return invalid_argument("inner dimensions differ: a is " + c.shape(0).text() + ", b is " +
                            c.shape(1).text());
  c.set(0, std::move(out));
  return ok_status();
}

inline Status attr_shape(InferenceContext& c) {
  c.set(0, c.shape_attr("shape"));
  return ok_status();
}

inline Status const_shape(InferenceContext& c) {
  c.set(0, c.tensor_attr("value").shape());
  return ok_status();
}

inline Status shape_shape(InferenceContext& c) {
  if (c.shape(0).known_rank()) c.set(0, PartialShape{std::int64_t(c.shape(0).rank())});
  return ok_status();
}

inline Status fill_shape(InferenceContext& c) {
  TROUPE_TRY(PartialShape shape, c.listed_shape(0));
  c.set(0, std::move(shape));
  return ok_status();
}

using Grads = std::vector<Output>;
inline Grads pass_grad(GradContext& c) { return {c.dy[0]}; }
inline Grads add_grad(GradContext& c) { return {c.dy[0], c.dy[0]}; }
inline Grads addn_grad(GradContext& c) { return Grads(c.x.size(), c.dy[0]); }
inline Grads sub_grad(GradContext& c) { return {c.dy[0], c.g.add("Neg", {c.dy[0]})}; }
inline Grads neg_grad(GradContext& c) { return {c.g.add("Neg", {c.dy[0]})}; }
inline Grads mul_grad(GradContext& c) {
  return {c.g.add("Mul", {c.dy[0], c.x[1]}), c.g.add("Mul", {c.dy[0], c.x[0]})};
}
inline Grads square_grad(GradContext& c) {
  Output twice = c.g.add("Add", {c.x[0], c.x[0]});
  return {c.g.add("Mul", {c.dy[0], twice})};
}
// y0 = a + b, y1 = a - b.
inline Grads both_grad(GradContext& c) {
  return {c.g.add("Add", {c.dy[0], c.dy[1]}), c.g.add("Sub", {c.dy[0], c.dy[1]})};
}
// square(a) + b, of other ops.
inline Grads square_plus(CompositeContext& c) {
  Output square = c.g.add("Square", {c.inputs[0]});
  return {c.g.add("Add", {square, c.inputs[1]})};
}
inline Grads broken_composite(CompositeContext& c) {
  c.g.add("Square", {c.inputs[0]});
  return {c.g.add("MatMul", {c.inputs[0], c.inputs[0]})};
}
inline Grads swap_composite(CompositeContext& c) { return {c.inputs[1], c.inputs[0]}; }

inline OpRegistry registry() {
  OpRegistry r;
  auto add = [&](OpDef def) { throw_if_error(r.add(std::move(def))); };
  add({.name = "Placeholder",
       .out = {"value"},
       .attrs = {"T: type", "shape: shape = ?"},
       .shape = attr_shape,
       .role = Role::placeholder});
  add({.name = "Const",
       .out = {"value"},
       .attrs = {"T: type", "value: tensor"},
       .shape = const_shape});
  add({.name = "MatMul",
       .in = {"a", "b"},
       .out = {"product"},
       .types = "f32 f64",
       .attrs = {"transpose_a: bool = false"},
       .shape = matmul_shape});
  add({.name = "Add",
       .in = {"a", "b"},
       .out = {"sum"},
       .types = "f32 f64 i32",
       .shape = broadcast_shape,
       .grad = add_grad,
       .commutative = true});
  add({.name = "Sub",
       .in = {"a", "b"},
       .out = {"y"},
       .types = "f32 f64",
       .shape = same_shape,
       .grad = sub_grad});
  add({.name = "Mul",
       .in = {"a", "b"},
       .out = {"y"},
       .types = "f32 f64",
       .shape = same_shape,
       .grad = mul_grad});
  add({.name = "Neg",
       .in = {"x"},
       .out = {"y"},
       .types = "f32 f64",
       .shape = same_shape,
       .grad = neg_grad});
  add({.name = "Square",
       .in = {"x"},
       .out = {"y"},
       .types = "f32 f64",
       .shape = same_shape,
       .grad = square_grad});
  add({.name = "Both",
       .in = {"a", "b"},
       .out = {"sum", "difference"},
       .types = "f32 f64",
       .shape = same_shape,
       .grad = both_grad});
  add({.name = "AddN",
       .in = {"values: T..."},
       .out = {"sum"},
       .types = "f32 f64",
       .shape = same_shape,
       .grad = addn_grad});
  add({.name = "Identity", .in = {"x"}, .out = {"y"}, .shape = same_shape, .grad = pass_grad});
  add({.name = "IdentityN", .in = {"x: types..."}, .out = {"y: types..."}, .shape = unknown_shape});
  add({.name = "StopGradient",
       .in = {"x"},
       .out = {"y"},
       .shape = same_shape,
       .no_gradient = "none flows"});
  add({.name = "Floor", .in = {"x"}, .out = {"y"}, .types = "f32 f64", .shape = same_shape});
  add({.name = "ArgMax",
       .in = {"x"},
       .out = {"y: i64"},
       .types = "f32 f64",
       .shape = scalar_shape});
  add({.name = "ZerosLike",
       .in = {"x"},
       .out = {"y"},
       .shape = same_shape,
       .no_gradient = "none flows"});
  add({.name = "OnesLike",
       .in = {"x"},
       .out = {"y"},
       .shape = same_shape,
       .no_gradient = "none flows"});
  add({.name = "Shape",
       .in = {"x"},
       .out = {"shape: out_type"},
       .attrs = {"out_type: type {i32 i64} = i64"},
       .shape = shape_shape,
       .value = shape_ints,
       .no_gradient = "none flows"});
  add({.name = "Fill",
       .in = {"dims: Tidx", "value"},
       .out = {"y"},
       .attrs = {"Tidx: type {i32 i64} = i64"},
       .shape = fill_shape,
       .host = {"dims"}});
  add({.name = "Variable",
       .out = {"handle: resource"},
       .attrs = {"dtype: type", "shape: shape", "shared_name: string = "},
       .stateful = true,
       .role = Role::handle,
       .external = {.resource = "variable"}});
  add({.name = "ReadVariable",
       .in = {"handle: resource"},
       .out = {"value: dtype"},
       .attrs = {"dtype: type", "shape: shape = ?"},
       .shape = attr_shape,
       .grad = pass_grad,
       .stateful = true,
       .role = Role::external,
       .external = {
           .resource = "variable", .verb = "read", .order = External::Order::read, .sees = true}});
  add({.name = "_EnsureShape",
       .in = {"x"},
       .out = {"y"},
       .types = "f32 f64 i32 i64 bool",
       .attrs = {"shape: shape", "message: string"},
       .shape = attr_shape,
       .grad = pass_grad});
  add({.name = "Assign",
       .in = {"var: resource", "value"},
       .types = "f32 f64",
       .shape = no_outputs,
       .no_gradient = "none flows",
       .stateful = true,
       .role = Role::external,
       .external = {.resource = "variable",
                    .verb = "log",
                    .order = External::Order::write,
                    .commits = true,
                    .sees = true,
                    .changes = true}});
  add({.name = "NoOp", .shape = no_outputs, .no_gradient = "none flows"});
  add({.name = "Split",
       .in = {"x"},
       .out = {"parts: T..."},
       .types = "f32",
       .attrs = {"mode: string {even odd} = even", "strides: list(int) = [1,1]",
                 "rate: float = 0.5"}});
  for (OpDef& def : control_ops()) add(std::move(def));
  add({.name = "SquarePlus",
       .in = {"a", "b"},
       .out = {"y"},
       .types = "f32 f64",
       .shape = same_shape,
       .composite = square_plus});
  add({.name = "Broken",
       .in = {"a"},
       .out = {"y"},
       .types = "f32",
       .shape = same_shape,
       .composite = broken_composite});
  add({.name = "Swap",
       .in = {"a", "b"},
       .out = {"b", "a"},
       .types = "f32",
       .composite = swap_composite});
  return r;
}

inline const OpRegistry& ops() {
  static const OpRegistry r = registry();
  return r;
}

inline Output placeholder(GraphBuilder& g, std::string name, PartialShape shape,
                          DType type = DType::f32, Site site = {}) {
  NodeSpec spec{.op = "Placeholder", .attrs = {{"T", type}, {"shape", std::move(shape)}}};
  spec.name = std::move(name);
  spec.site = std::move(site);
  return g.add(std::move(spec)).output();
}

inline Output constant(GraphBuilder& g, Tensor value) {
  DType type = value.dtype();
  return g.add("Const", {}, {{"T", type}, {"value", std::move(value)}});
}

}  // namespace troupe::sample
