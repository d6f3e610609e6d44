// Variable, ReadVariable, IsVariableInitialized: state that outlives a run. None has a kernel: a
// handle is resolved when the graph is compiled, and reads are answered by the variable container.
#include "ops/op.hpp"

using namespace troupe;

namespace {

// The edge of a handle carries the shape of its variable, so that reads and writes can be checked
// while the graph is built.
Status variable_shape(InferenceContext& c) {
  c.set(0, c.shape_attr("shape"));
  return ok_status();
}

// What arrives at a read is a part of the gradient of the variable, which is summed up at its
// handle.
std::vector<Output> to_variable(GradContext& c) { return {c.dy[0]}; }

}  // namespace

TROUPE_OPS(variable) {
  r.add({.name = "Variable",
         .out = {"handle: resource"},
         .types = "f32 f64 f16 bf16 i8 i16 i32 i64 u8 u16 u32 u64 bool c64 c128 string",
         .attrs = {"T: type", "shape: shape",
                   "container: string = ", "shared_name: string = ", "trainable: bool = false"},
         .shape = variable_shape,
         .no_gradient = "a handle",
         .stateful = true,
         .role = Role::handle,
         .external = {.resource = "variable"},
         .doc =
             "A handle to a tensor that outlives runs, of dtype T and shape `shape`. Its name "
             "within `container` is `shared_name`, or the node's name if that is empty; two nodes "
             "with the same name are the same variable. It has no value until the first Assign. "
             "`trainable` is a mark for optimizers."});
  r.add({.name = "ReadVariable",
         .in = {"handle: resource"},
         .out = {"value"},
         .types = "f32 f64 f16 bf16 i8 i16 i32 i64 u8 u16 u32 u64 bool c64 c128 string",
         .attrs = {"T: type"},
         .shape = same_shape,
         .grad = to_variable,
         .stateful = true,
         .role = Role::external,
         .external =
             {.resource = "variable", .verb = "read", .order = External::Order::read, .sees = true},
         .doc = "The variable's value as of the run's snapshot, or, if ordered after a write of "
                "its own run, the value that the write leaves. failed_precondition if the variable "
                "has no value."});
  r.add({.name = "IsVariableInitialized",
         .in = {"handle: resource"},
         .out = {"initialized: bool"},
         .shape = scalar_shape,
         .no_gradient = "a truth value",
         .stateful = true,
         .role = Role::external,
         .external = {.resource = "variable",
                      .verb = "is_initialized",
                      .order = External::Order::read,
                      .sees = true},
         .doc = "Whether the variable has a value as of the run's snapshot."});
}
