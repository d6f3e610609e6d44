// FIFOQueue and its operations. None has a kernel: a handle is resolved when a step is loaded,
// and the operations are answered by the queue's actor (actors/resources/queue_state.hpp).
#include "ops/op.hpp"

using namespace troupe;

namespace {

template <class T>
const std::vector<T>& list_attr(const InferenceContext& c, std::string_view name) {
  static const std::vector<T> none;
  const AttrMap& attrs = c.attrs();
  auto found = attrs.find(name);
  const auto* list = found == attrs.end() ? nullptr : found->second.get<std::vector<T>>();
  return list ? *list : none;
}

// One shape a component, or none at all.
Status check_components(const InferenceContext& c) {
  std::size_t types = list_attr<DType>(c, "types").size();
  std::size_t shapes = list_attr<PartialShape>(c, "shapes").size();
  if (types == 0)
    return invalid_argument("an element has at least one component; `types` is empty");
  if (shapes != 0 && shapes != types)
    return invalid_argument("`shapes` has " + std::to_string(shapes) + " entries for " +
                            std::to_string(types) + " types");
  return ok_status();
}

Status queue_shape(InferenceContext& c) {
  TROUPE_TRY(check_components(c));
  if (c.int_attr("capacity") < 1)
    return invalid_argument("`capacity` must be at least 1, not " +
                            std::to_string(c.int_attr("capacity")));
  c.set(0, PartialShape::scalar());
  return ok_status();
}

// Outputs as `shapes` declares them.
Status element_shape(InferenceContext& c) {
  TROUPE_TRY(check_components(c));
  const auto& shapes = list_attr<PartialShape>(c, "shapes");
  for (std::size_t i = 0; i < shapes.size(); ++i) c.set(int(i), shapes[i]);
  return ok_status();
}

Status bytes_shape(InferenceContext& c) {
  c.set(0, PartialShape{PartialShape::kUnknown});
  return ok_status();
}

// What can be asked of a resource of any kind but a variable or dataset ("*"), also of kinds of the
// program's own: how a session saves them.
void add_saving(OpTable& r) {
  r.add({.name = "SaveResource",
         .in = {"handle: resource"},
         .out = {"state: u8"},
         .shape = bytes_shape,
         .no_gradient = "bytes",
         .host = {"state"},
         .stateful = true,
         .role = Role::external,
         .external = {.resource = "*", .verb = "save_state", .sees = true},
         .doc = "What a queue, or a resource of a kind of the program's own, holds as of a commit. "
                "A run that others overtake is done again. unimplemented when its kind does not "
                "say how it is saved."});
  r.add({.name = "LoadResource",
         .in = {"handle: resource", "state: u8"},
         .shape = no_outputs,
         .no_gradient = "no outputs",
         .host = {"state"},
         .stateful = true,
         .role = Role::external,
         .external = {.resource = "*",
                      .verb = "load_state",
                      .commits = true,
                      .sees = true,
                      .changes = true,
                      .fills = true},
         .doc = "Puts such a state into a resource that no run has used yet, when this run "
                "commits; failed_precondition for another one, invalid_argument for a state that "
                "it cannot have."});
}

}  // namespace

TROUPE_OPS(queue) {
  add_saving(r);
  r.add({.name = "FIFOQueue",
         .out = {"handle: resource"},
         .attrs = {"types: list(type)", "shapes: list(shape) = []", "capacity: int = 32",
                   "container: string = ", "shared_name: string = "},
         .shape = queue_shape,
         .no_gradient = "a handle",
         .stateful = true,
         .role = Role::handle,
         .external = {.resource = "queue"},
         .doc = "A handle on a bounded first-in-first-out queue of tuples with the dtypes `types` "
                "and, when given, the `shapes`. Named like a Variable."});
  r.add({.name = "Enqueue",
         .in = {"handle: resource", "values: types..."},
         .shape = no_outputs,
         .no_gradient = "no outputs",
         .host = {"values"},
         .stateful = true,
         .role = Role::external,
         .external = {.resource = "queue",
                      .verb = "enqueue",
                      .commits = true,
                      .changes = true,
                      .fills = true},
         .doc = "Appends one tuple, visible to other runs when this run commits. Waits while the "
                "queue is full; cancelled once it is closed."});
  r.add({.name = "Dequeue",
         .in = {"handle: resource"},
         .out = {"values: types..."},
         .attrs = {"shapes: list(shape) = []"},
         .shape = element_shape,
         .no_gradient = "the element comes from outside of the run",
         .host = {"values"},
         .stateful = true,
         .role = Role::external,
         .external = {.resource = "queue",
                      .verb = "dequeue",
                      .per_replica = true,
                      .commits = true,
                      .changes = true},
         .doc = "The oldest tuple, which leaves the queue when this run commits. Waits while the "
                "queue is empty; out_of_range when it is closed and nothing can come any more."});
  r.add(
      {.name = "QueueClose",
       .in = {"handle: resource"},
       .attrs = {"cancel_pending: bool = false"},
       .shape = no_outputs,
       .no_gradient = "no outputs",
       .stateful = true,
       .role = Role::external,
       .external =
           {.resource = "queue", .verb = "close", .commits = true, .changes = true, .fills = true},
       .doc = "No element enters any more, once those that wait have, or at once and cancelling "
              "them with `cancel_pending`. cancelled when the queue is closed already."});
  r.add({.name = "QueueSize",
         .in = {"handle: resource"},
         .out = {"size: i64"},
         .shape = scalar_shape,
         .no_gradient = "a number of elements",
         .host = {"size"},
         .stateful = true,
         .role = Role::external,
         .external = {.resource = "queue",
                      .look = [](const QueueView& queue) -> std::vector<Tensor> {
                        return {Tensor::scalar<std::int64_t>(queue.size)};
                      },
                      .sees = true},
         .doc = "How many elements the queue holds as of the run's snapshot."});
}
