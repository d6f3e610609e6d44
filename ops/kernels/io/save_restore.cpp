// Save and Restore. What touches files has no kernel: the runtime carries it out.
#include "ops/kernels/io/list_attr.hpp"
#include "ops/op.hpp"

using namespace troupe;

namespace {

Status check_names(const InferenceContext& c) {
  std::size_t names = list_attr<std::string>(c, "names").size();
  std::size_t types = list_attr<DType>(c, "types").size();
  if (names != types)
    return invalid_argument("`names` has " + std::to_string(names) + " entries for " +
                            std::to_string(types) + " tensors");
  return c.want_rank(0, 0);
}

Status save_shape(InferenceContext& c) { return check_names(c); }

Status restore_shape(InferenceContext& c) {
  TROUPE_TRY(check_names(c));
  const auto& shapes = list_attr<PartialShape>(c, "shapes");
  if (!shapes.empty() && int(shapes.size()) != c.outputs())
    return invalid_argument("`shapes` has " + std::to_string(shapes.size()) + " entries for " +
                            std::to_string(c.outputs()) + " tensors");
  for (std::size_t i = 0; i < shapes.size(); ++i) c.set(int(i), shapes[i]);
  return ok_status();
}

}  // namespace

TROUPE_OPS(save_restore) {
  r.add({.name = "Save",
         .in = {"prefix: string", "tensors: types..."},
         .attrs = {"names: list(string)"},
         .shape = save_shape,
         .no_gradient = "no outputs",
         .host = {"prefix", "tensors"},
         .stateful = true,
         .role = Role::external,
         .external = {.resource = "files", .verb = "save", .on_host = true, .commits = true},
         .doc = "Writes the tensors under their `names` to `prefix`.safetensors when the run "
                "commits: a failed run leaves an older file unchanged. If several replicas would "
                "write one file, the first one does."});
  r.add({.name = "Restore",
         .in = {"prefix: string"},
         .out = {"tensors: types..."},
         .attrs = {"names: list(string)", "shapes: list(shape) = []"},
         .shape = restore_shape,
         .no_gradient = "the tensors come from files",
         .host = {"prefix", "tensors"},
         .stateful = true,
         .role = Role::external,
         .external = {.resource = "files", .verb = "restore", .on_host = true},
         .doc = "Reads the tensors `names` from the files that Save wrote under `prefix`; "
                "not_found for an unknown name, invalid_argument for another dtype or shape."});
}
