// Queues of four kinds and their operations. None has a kernel: a handle is resolved when a step is
// loaded, and the operations are answered by the queue's actor (actors/resources/queue_state.hpp).
#include "ops/kernels/io/list_attr.hpp"
#include "ops/op.hpp"

using namespace troupe;

namespace {

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

Status shuffle_shape(InferenceContext& c) {
  TROUPE_TRY(queue_shape(c));
  const std::int64_t kept = c.int_attr("min_after_dequeue"), capacity = c.int_attr("capacity");
  if (kept < 0 || kept >= capacity)
    return invalid_argument("`min_after_dequeue` must be at least 0 and below the capacity of " +
                            std::to_string(capacity) + ", not " + std::to_string(kept));
  return ok_status();
}

Status padding_shape(InferenceContext& c) {
  TROUPE_TRY(queue_shape(c));
  const auto& shapes = list_attr<PartialShape>(c, "shapes");
  if (shapes.empty()) return invalid_argument("`shapes` must give a shape for each component");
  for (std::size_t i = 0; i < shapes.size(); ++i)
    if (!shapes[i].known_rank())
      return invalid_argument("the rank of component " + std::to_string(i) +
                              " must be known: shorter elements are padded in each dimension");
  return ok_status();
}

Status priority_shape(InferenceContext& c) {
  TROUPE_TRY(queue_shape(c));
  const auto& shapes = list_attr<PartialShape>(c, "shapes");
  if (list_attr<DType>(c, "types").front() != DType::i64 ||
      (!shapes.empty() && !shapes.front().accepts(Shape{})))
    return invalid_argument("component 0 is the priority: it must be an i64 scalar");
  return ok_status();
}

// Batches of what `shapes` declares.
Status batch_shape(InferenceContext& c) {
  TROUPE_TRY(check_components(c));
  TROUPE_TRY(c.want_rank(1, 0));
  std::int64_t n = PartialShape::kUnknown;
  if (const auto known = c.ints(1); known && known->size() == 1) {
    n = known->front();
    if (n < 0) return invalid_argument("n must be at least 0, not " + std::to_string(n));
  }
  const auto& shapes = list_attr<PartialShape>(c, "shapes");
  for (std::size_t i = 0; i < shapes.size(); ++i) {
    if (!shapes[i].known_rank()) continue;
    std::vector<std::int64_t> dims{n};
    dims.insert(dims.end(), shapes[i].dims().begin(), shapes[i].dims().end());
    TROUPE_TRY(PartialShape batch, PartialShape::make(dims));
    c.set(int(i), std::move(batch));
  }
  return ok_status();
}

// DequeueUpTo may give fewer.
Status remainder_shape(InferenceContext& c) {
  TROUPE_TRY(batch_shape(c));
  for (int i = 0; i < c.outputs(); ++i)
    if (c.result()[std::size_t(i)].known_rank()) {
      std::vector<std::int64_t> dims = c.result()[std::size_t(i)].dims();
      dims[0] = PartialShape::kUnknown;
      TROUPE_TRY(PartialShape batch, PartialShape::make(dims));
      c.set(i, std::move(batch));
    }
  return ok_status();
}

// Every component is a batch of as many elements.
Status batches_alike(InferenceContext& c) {
  std::int64_t n = PartialShape::kUnknown;
  for (int i = 1; i < c.inputs(); ++i) {
    TROUPE_TRY(c.want_rank_at_least(i, 1));
    if (!c.shape(i).known_rank() || !c.shape(i).known(0)) continue;
    if (n != PartialShape::kUnknown && n != c.shape(i).dim(0))
      return invalid_argument("the components have " + std::to_string(n) + " and " +
                              std::to_string(c.shape(i).dim(0)) + " elements");
    n = c.shape(i).dim(0);
  }
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
         .doc = "The committed contents of a queue, or of a resource of a kind that the program "
                "defines. The run is repeated if others commit changes to it meanwhile. "
                "unimplemented if its kind does not define how it is saved."});
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
         .doc = "Loads a state from SaveResource into a resource that no run has used yet, when "
                "this run commits; failed_precondition for a used resource, invalid_argument for "
                "an invalid state."});
}

OpDef queue_handle(std::string name, std::string shapes, std::vector<std::string> own_attrs,
                   ShapeFn shape, std::string doc) {
  std::vector<std::string> attrs{"types: list(type)", std::move(shapes), "capacity: int = 32"};
  attrs.insert(attrs.end(), own_attrs.begin(), own_attrs.end());
  attrs.insert(attrs.end(), {"container: string = ", "shared_name: string = "});
  return {.name = std::move(name),
          .out = {"handle: resource"},
          .attrs = std::move(attrs),
          .shape = shape,
          .no_gradient = "a handle",
          .stateful = true,
          .role = Role::handle,
          .external = {.resource = "queue"},
          .doc = std::move(doc)};
}

void add_handles(OpTable& r) {
  r.add(queue_handle("FIFOQueue", "shapes: list(shape) = []", {}, queue_shape,
                     "A handle to a bounded first-in-first-out queue of tuples with the dtypes "
                     "`types` and, if given, the shapes `shapes`. It is named like a Variable."));
  r.add(queue_handle(
      "RandomShuffleQueue", "shapes: list(shape) = []",
      {"min_after_dequeue: int = 0", "seed: int = 0"}, shuffle_shape,
      "A handle to a bounded queue that returns its elements in random order; otherwise like "
      "FIFOQueue. While it is open, a dequeue leaves at least `min_after_dequeue` elements. Which "
      "ones it returns depends on `seed`, the queue's name, the commit before the run and the "
      "contents of the queue: a repeated run gets the same ones, even after a restart. If several "
      "elements are enqueued or dequeued at once, the capacity must be at least the sum of "
      "`min_after_dequeue` and both numbers, or enqueues and dequeues may wait for each other."));
  r.add(queue_handle(
      "PaddingFIFOQueue", "shapes: list(shape)", {}, padding_shape,
      "A FIFOQueue whose elements may differ in the dimensions that `shapes` leaves unknown; their "
      "ranks are known. DequeueMany and DequeueUpTo pad each component at the end of each "
      "dimension to the largest size in the batch, with zeros or empty strings."));
  r.add(queue_handle(
      "PriorityQueue", "shapes: list(shape) = []", {}, priority_shape,
      "A handle to a bounded queue that returns the element with the lowest priority value first, "
      "and among equal ones the oldest; otherwise like FIFOQueue. Component 0 of an element is its "
      "priority, an i64 scalar, so `types` begins with i64. A dequeue returns the lowest element "
      "that, when it is answered, is committed or added by the same run and not taken by another "
      "run."));
}

OpDef dequeue_batch(std::string name, std::string verb, ShapeFn shape, std::string doc) {
  return {.name = std::move(name),
          .in = {"handle: resource", "n: i64"},
          .out = {"values: types..."},
          .attrs = {"shapes: list(shape) = []"},
          .shape = shape,
          .no_gradient = "the elements come from outside of the run",
          .host = {"n", "values"},
          .stateful = true,
          .role = Role::external,
          .external = {.resource = "queue",
                       .verb = std::move(verb),
                       .per_replica = true,
                       .commits = true,
                       .changes = true},
          .doc = std::move(doc)};
}

void add_batches(OpTable& r) {
  r.add({.name = "EnqueueMany",
         .in = {"handle: resource", "values: types..."},
         .shape = batches_alike,
         .no_gradient = "no outputs",
         .host = {"values"},
         .stateful = true,
         .role = Role::external,
         .external = {.resource = "queue",
                      .verb = "enqueue_many",
                      .commits = true,
                      .changes = true,
                      .fills = true},
         .doc =
             "Appends the rows of `values` (dimension 0) as elements, in order and all at once: "
             "waits until there is room for all of them. invalid_argument for more rows than the "
             "queue's capacity; zero rows do nothing. Otherwise like Enqueue."});
  r.add(dequeue_batch(
      "DequeueMany", "dequeue_many", batch_shape,
      "Takes `n` elements, stacked along a new dimension 0 (a PaddingFIFOQueue pads them); they "
      "leave the queue when this run commits. Waits until there are n elements, and later dequeues "
      "wait behind it; out_of_range if the queue is closed and has fewer, which then stay. "
      "invalid_argument if n exceeds the capacity or the queue's shapes are unknown. n = 0 gives "
      "an empty batch."));
  r.add(dequeue_batch(
      "DequeueUpTo", "dequeue_up_to", remainder_shape,
      "Like DequeueMany, but returns the remaining elements of a closed queue that has fewer than "
      "`n`; out_of_range only if there are none."));
}

}  // namespace

TROUPE_OPS(queue) {
  add_saving(r);
  add_handles(r);
  add_batches(r);
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
         .doc = "Appends one tuple, which other runs see when this run commits. Waits while the "
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
         .doc =
             "Takes the next tuple (of a FIFOQueue the oldest), which leaves the queue when this "
             "run commits. Waits while the queue is empty; out_of_range if it is closed and no "
             "more elements can arrive."});
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
       .doc = "Closes the queue: no more elements can be added. Enqueues that already wait still "
              "succeed, unless `cancel_pending` cancels them. cancelled if the queue is already "
              "closed."});
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
         .doc = "The number of elements in the queue as of the run's snapshot."});
}
