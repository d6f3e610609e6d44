// What an op is: arguments, attributes, shape function, gradient, documentation. One definition,
// from which registry, wrappers, docs and checks are derived.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "graph/graph.hpp"

namespace troupe {

class InferenceContext;  // graph/passes/shape_inference.hpp
class GradContext;       // graph/gradients.hpp
class GraphBuilder;      // graph/builder.hpp
class Output;            // graph/builder.hpp
class CompositeContext;  // graph/builder.hpp

using ShapeFn = Status (*)(InferenceContext&);
// Says with `set_ints` what is known of integer outputs before a run. Called after the shape
// function, on a node that passed its checks.
using ValueFn = void (*)(InferenceContext&);
// One Output per input; an empty Output (no graph) means "no gradient flows there".
using GradFn = std::vector<Output> (*)(GradContext&);
using CompositeFn = std::vector<Output> (*)(CompositeContext&);

// How the runtime executes a node.
enum class Role : std::uint8_t {
  kernel,       // a kernel of the device
  handle,       // stands for a resource; resolved when a step is loaded, never executed
  external,     // handed back to the executor, which asks a resource: see External
  placeholder,  // must be fed
  send,         // made by partition
  recv,
  copy,  // between memory spaces of one device, made by partition
  switch_,
  merge,
  enter,
  exit,
  next_iteration,
  loop_cond,
  control_trigger,
  loop,             // stands for a loop among the nodes around it (PlanFrame)
  loop_body,        // begins an iteration
  loop_next,        // ends one, and knows whether another follows
  invoke,           // calls a function that calls itself (PlanFrame)
  function_body,    // begins such a call
  function_return,  // ends it
  call,             // runs a function; gone once a step is lowered, as the next two are
  argument,         // of the function in whose body it stands
  saved,            // a value of a function, in its gradient function
  keep,  // a list and what is pushed onto it: where that is dead, an entry without a value
  kept,  // takes it off again: dead where the entry has no value
};

// What a run finds in a queue: as of its snapshot, with what it has done to it itself.
struct QueueView {
  std::int64_t size = 0;
  std::int64_t capacity = 0;
  bool closed = false;  // or will be, once the enqueues that wait have entered
};

// What no kernel computes: a handle, or a node that asks a resource for something. Told once, in
// the file of the op; placement, the order of writes, plans, bursts, executors and the search for
// conflicts go by it. What a verb does is told here when it only looks at a queue, else in the file
// of the resource's kind (actors/).
struct External {
  // The kind of the resource that a handle stands for, or that the op's leading handles must be of.
  // An op without handles asks the one resource of that kind that its device has ("files").
  std::string resource = {};
  std::string verb = {};  // what is asked: a word between the op and that file
  // Of a queue, in place of a verb: the outputs, made of what the run finds.
  std::vector<Tensor> (*look)(const QueueView&) = nullptr;

  // Among nodes of one run. Writes of one resource have an order and its reads an epoch; those of
  // one container that become ready together are one request.
  enum class Order : std::uint8_t { none, read, write };
  Order order = Order::none;
  // With replicas each does it for itself, as with a random op.
  bool per_replica = false;
  // Where files are: on a device in host memory.
  bool on_host = false;

  // Leaves a key at the resource, so that the run takes a commit number.
  bool commits = false;
  // Among runs (Uses). What it sees must not have changed between the snapshot and the commit.
  bool sees = false;
  bool changes = false;
  // Elements enter, or will not any more: what a run that took an element of its own depends on.
  bool fills = false;
};

// How the contributions of logical replicas to one write become one. `each`: they do not, the rule
// is applied to one after the other, and their operands need not be of one shape. `rows`: the
// operands of one replica behind those of the other, along dimension 0, floats divided by the
// number of replicas.
enum class Combine : std::uint8_t { first = 0, sum = 1, mean = 2, each = 3, rows = 4 };

// The definition. Written with designated initialisers:
//   {.name = "MatMul", .in = {"a", "b"}, .out = {"product"}, .types = "f32 f64",
//    .attrs = {"transpose_a: bool = false", "transpose_b: bool = false"},
//    .shape = matmul_shape, .grad = matmul_grad, .doc = "..."}
//
// Arguments (in, out):
//   "x"              dtype is the type attribute T
//   "axis: i64"      fixed dtype
//   "index: Tidx"    another type attribute, declared in attrs
//   "values: T..."   a list of one or more of type T; its length becomes the int attribute N
//   "parts: types..." a list of any types; they become the list(type) attribute "types"
//   "var: resource"  a handle; what it stands for has the type attribute T, if the op has one
//   "step: resource of i64"  a handle on a variable of that dtype
//   "y: real of T"   an output of the type of the parts of T, a complex type; "y: complex of T" is
//   of
//                    the complex type whose parts are T
//   an output "parts: T..." has as many ports as the int attribute N says
// Attributes:
//   "name: kind", "name: kind = default", "Tidx: type {i32 i64} = i64", "mode: string {a b} = a"
//   with kind as Attr::kind() spells it. Lists: "strides: list(int) = [1,1]".
// T itself is declared by `types` (space separated dtype names) and inferred from the inputs, or
// given as attribute "T" where no input has it (then `T` may have a default in attrs).
struct OpDef {
  std::string name;
  std::vector<std::string> in = {};
  std::vector<std::string> out = {};
  std::string types = {};
  std::vector<std::string> attrs = {};
  ShapeFn shape = nullptr;
  ValueFn value = nullptr;  // for integers that shapes are made of
  GradFn grad = nullptr;
  std::string no_gradient =
      {};  // why differentiation stops here; empty: a missing grad is an error
  std::vector<std::string> host =
      {};                    // inputs and outputs that live in host memory on every device
  bool stateful = false;     // never merged, folded or duplicated
  bool random = false;       // draws from KernelContext::random(); implies stateful
  bool commutative = false;  // of two inputs, for CSE
  bool cheap = false;        // a few hundred nanoseconds at most: may run on an actor's thread
  bool elementwise = false;  // an output element takes an element of each input: small is cheap
  bool contraction = false;  // an output element may read as many elements as an input has
  // Of an op whose output is zero but for a part: the op that adds it to a first input more, which
  // it overwrites where nobody else needs it. Loops sum up gradients with it.
  std::string added = {};
  Role role = Role::kernel;
  External external = {};                // of roles handle and external
  std::vector<std::string> reduce = {};  // operands in which the contributions of replicas meet
  Combine combine = Combine::mean;
  CompositeFn composite = nullptr;  // built of other ops when it is added; has no kernel
  std::string doc = {};

  ~OpDef();  // once, not in each file that defines ops
};

// A definition taken apart once, at registration.
struct ArgSpec {
  enum class Kind : std::uint8_t { fixed, attr, list, types };
  std::string name;
  Kind kind = Kind::attr;
  DType dtype = DType::invalid;  // fixed
  DType held = DType::invalid;   // of a handle whose variable's dtype is not T
  std::string type_attr;         // attr, list
  // The dtype made of the one that the attribute says; null: that one itself.
  DType (*derived)(DType) = nullptr;
  bool host = false;

  // The dtype of a tensor of this argument, which is no `types`.
  DType type(const AttrMap& attrs) const;
};
struct AttrSpec {
  std::string name;
  std::string kind;
  std::optional<Attr> fallback;
  std::vector<DType> types;          // allowed, for kind "type"
  std::vector<std::string> strings;  // allowed, for kind "string" with a set
};
struct OpInfo {
  OpDef def;
  std::vector<ArgSpec> in, out;
  std::vector<AttrSpec> attrs;  // includes T and N where the arguments imply them

  const AttrSpec* attr(std::string_view name) const;
  // Argument and position of flat input `i` of a node ("values[2]").
  std::string input_name(const NodeDef& node, int i) const;
  // The dtype that the variable behind handle `arg` must have; invalid: the op does not say.
  DType held_by(const ArgSpec& arg, const AttrMap& attrs) const;
  // Its leading inputs are handles on resources.
  bool takes_handles() const {
    return def.role == Role::external && !in.empty() && in[0].dtype == DType::resource;
  }
  bool is(External::Order order) const {
    return def.role == Role::external && def.external.order == order;
  }
};

}  // namespace troupe
