// SaveShard and RestoreShard: variables in the files of a checkpoint, each written and read by the
// process that has it. What touches files has no kernel: the runtime carries it out.
#include "ops/kernels/io/list_attr.hpp"
#include "ops/op.hpp"

using namespace troupe;

namespace {

Status check_lengths(const InferenceContext& c, std::string_view other, std::size_t length) {
  const std::size_t names = list_attr<std::string>(c, "names").size();
  if (names == length) return ok_status();
  return invalid_argument("`names` has " + std::to_string(names) + " entries, `" +
                          std::string(other) + "` " + std::to_string(length));
}

Status save_shard_shape(InferenceContext& c) {
  TROUPE_TRY(check_lengths(c, "types", list_attr<DType>(c, "types").size()));
  TROUPE_TRY(c.want_rank(0, 0));
  TROUPE_TRY(c.want_rank(1, 0));
  c.set(0, PartialShape{});
  return ok_status();
}

Status restore_shard_shape(InferenceContext& c) {
  const auto& shapes = list_attr<PartialShape>(c, "shapes");
  TROUPE_TRY(check_lengths(c, "types", list_attr<DType>(c, "types").size()));
  TROUPE_TRY(check_lengths(c, "shapes", shapes.size()));
  TROUPE_TRY(check_lengths(c, "sha256", list_attr<std::string>(c, "sha256").size()));
  for (std::size_t i = 0; i < shapes.size(); ++i) c.set(int(i), shapes[i]);
  return ok_status();
}

}  // namespace

TROUPE_OPS(checkpoint_shard) {
  r.add({.name = "SaveShard",
         .in = {"folder: string", "token: string", "tensors: types..."},
         .out = {"files: string"},
         .attrs = {"names: list(string)", "file: string", "refuse_nan: bool = false"},
         .shape = save_shard_shape,
         .no_gradient = "strings",
         .host = {"folder", "token", "tensors", "files"},
         .stateful = true,
         .role = Role::external,
         .external = {.resource = "shards", .verb = "save", .on_host = true},
         .doc = "Writes the tensors under their `names` into the folder of a checkpoint that a "
                "session is writing, to files whose names begin with `file`, and returns the "
                "files' names, checksums and hashes. They become part of the checkpoint once the "
                "session finishes it. failed_precondition if the folder lacks that token, as on a "
                "machine that does not share it; with `refuse_nan`, out_of_range for a NaN."});
  r.add({.name = "RestoreShard",
         .out = {"tensors: types..."},
         .attrs = {"file: string", "names: list(string)", "sha256: list(string)",
                   "shapes: list(shape)"},
         .shape = restore_shard_shape,
         .no_gradient = "the tensors come from a file",
         .host = {"tensors"},
         .stateful = true,
         .role = Role::external,
         .external = {.resource = "shards", .verb = "restore", .on_host = true},
         .doc = "Reads the tensors `names` from a file of a checkpoint; data_loss if one does not "
                "have the dtype, shape or hash that the checkpoint states."});
}
