// Dataset, DataPipeline and NextElement: input pipelines. The element of a run is a function of its
// number alone (ops/data/pipeline.hpp); reading files and handing out numbers is the runtime's.
#include "graph/control/state/state_ops.hpp"
#include "ops/data/stage_kind.hpp"
#include "ops/formulas/arithmetic.hpp"
#include "ops/op.hpp"

using namespace troupe;

namespace {

Status dataset_shape(InferenceContext& c) {
  if (c.int_attr("batch") < 1)
    return invalid_argument("`batch` must be at least 1, not " +
                            std::to_string(c.int_attr("batch")));
  if (c.int_attr("repeat") < -1)
    return invalid_argument("`repeat` must be a count, or -1 for ever, not " +
                            std::to_string(c.int_attr("repeat")));
  for (const char* name : {"shuffle", "limit", "prefetch", "first"})
    if (c.int_attr(name) < 0)
      return invalid_argument("`" + std::string(name) + "` must not be negative");
  c.set(0, PartialShape::scalar());
  return ok_status();
}

Status pipeline_shape(InferenceContext& c) {
  if (c.int_attr("prefetch") < 0) return invalid_argument("`prefetch` must not be negative");
  const auto* stages = c.attrs().find("stages")->second.get<std::vector<std::string>>();
  TROUPE_TRY(const Signature elements, pipeline_signature(*stages));
  for (const Component& component : elements)
    if (component.dtype == DType::invalid)
      return invalid_argument("the stages do not say what elements consist of");
  const auto* functions = c.attrs().find("functions")->second.get<std::vector<std::string>>();
  const std::size_t wanted = functions_wanted(*stages);
  if (wanted != functions->size())
    return invalid_argument(std::to_string(functions->size()) + " functions for " +
                            std::to_string(wanted) + " stages that call one");
  const Tensor* tensors = c.attrs().find("tensors")->second.get<Tensor>();
  if (tensors->dtype() != DType::string)
    return invalid_argument("`tensors` must be strings of bytes");
  c.set(0, PartialShape::scalar());
  return ok_status();
}

Status dataset_element_shape(InferenceContext& c) {
  const auto* types = c.attrs().find("types")->second.get<std::vector<DType>>();
  const auto* shapes = c.attrs().find("shapes")->second.get<std::vector<PartialShape>>();
  if (types->size() != shapes->size())
    return invalid_argument("`shapes` has " + std::to_string(shapes->size()) + " entries for " +
                            std::to_string(types->size()) + " types");
  for (std::size_t i = 0; i < shapes->size(); ++i) c.set(int(i), (*shapes)[i]);
  return ok_status();
}

Status count_one_more(KernelContext& c) {
  c.set_output(0,
               Tensor::scalar(formula::Add()(*c.input(0).data<std::int64_t>(), std::int64_t{1})));
  return ok_status();
}

}  // namespace

TROUPE_OPS(dataset) {
  r.add({.name = "Dataset",
         .out = {"handle: resource"},
         .attrs = {"source: string {idx digits}", "first: int = 0", "digits_seed: int = 0",
                   "files: list(string) = []", "batch: int = 1", "shuffle: int = 0",
                   "seed: int = 0", "repeat: int = 1", "drop_remainder: bool = false",
                   "prefetch: int = 0", "limit: int = 0", "types: list(type)",
                   "shapes: list(shape)", "container: string = ", "shared_name: string = "},
         .shape = dataset_shape,
         .no_gradient = "a handle",
         .stateful = true,
         .role = Role::handle,
         .external = {.resource = "dataset"},
         .doc = "A handle to an input pipeline of (image, label) pairs: from the IDX `files` "
                "(images, labels), or digits generated from `digits_seed`. It uses `limit` "
                "examples (0: all) starting at `first`, shuffled anew in each epoch through a "
                "window of `shuffle` examples (0: in order) with `seed`, and repeats them `repeat` "
                "times (-1: forever). `prefetch` elements are made ahead."});
  r.add({.name = "DataPipeline",
         .out = {"handle: resource"},
         .attrs = {"stages: list(string)", "files: list(string) = []", "tensors: tensor",
                   "functions: list(string) = []", "prefetch: int = 0",
                   "container: string = ", "shared_name: string = "},
         .shape = pipeline_shape,
         .no_gradient = "a handle",
         .stateful = true,
         .role = Role::handle,
         .external = {.resource = "dataset"},
         .doc = "A handle to an input pipeline. `stages` lists sources and stages in postfix "
                "order: each stage takes the entries before it that are not taken yet "
                "(ops/data/examples.hpp). Sources use `files` and `tensors` (bytes) in order, "
                "stages the graph's `functions`. `prefetch` elements are made ahead."});
  r.add({.name = "NextElement",
         .in = {"handle: resource"},
         .out = {"values: types..."},
         .attrs = {"shapes: list(shape)"},
         .shape = dataset_element_shape,
         .no_gradient = "the elements come from outside",
         .host = {"values"},
         .stateful = true,
         .role = Role::external,
         .external = {.resource = "dataset", .verb = "next", .per_replica = true},
         .doc = "The dataset element assigned to this run and replica; out_of_range past the end. "
                "In a loop, each time the next element."});
  r.add({.name = std::string(kElementAtOp),
         .in = {"handle: resource", "count: i64"},
         .out = {"values: types..."},
         .attrs = {"shapes: list(shape)"},
         .shape = dataset_element_shape,
         .no_gradient = "the elements come from outside",
         .host = {"count", "values"},
         .stateful = true,
         .role = Role::external,
         .external = {.resource = "dataset", .verb = "at", .per_replica = true},
         .doc = "The element of this replica after the first `count` ones of this run: NextElement "
                "in a loop, which keeps the count."});
  r.add({.name = std::string(kNextCountOp),
         .in = {"count: i64"},
         .out = {"next: i64"},
         .shape = scalar_shape,
         .no_gradient = "a count",
         .host = {"count", "next"},
         .cheap = true,
         .doc = "The number of elements that a loop has taken, after one more NextElement."})
      .cpu(kernel<count_one_more>);
}
