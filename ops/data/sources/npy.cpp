// `npy {NAME DTYPE SHAPE}...`: the rows of NPY files, one file per component, each with its
// required type. NAME is only for people: the files are those of the node.
#include "ops/data/arrays/npy.hpp"
#include "ops/data/byte_stream.hpp"
#include "ops/data/stage_kind.hpp"

namespace troupe {

namespace {

Expected<StagePtr> open_npy(const StageText& stage, Signature, Stages, StageOpening& opening) {
  TROUPE_TRY(const auto arrays, parse_numpy_words(stage, 0));
  std::vector<NpyRows> rows;
  for (const data::NumpyArray& array : arrays) {
    TROUPE_TRY(DataFilePtr found, opening.next_file());
    TROUPE_TRY(DataFilePtr file, unpacked(std::move(found)));
    TROUPE_TRY(NpyRows opened, NpyRows::open(std::move(file), array.dtype, array.shape));
    rows.push_back(std::move(opened));
  }
  TROUPE_TRY(auto source, numpy_source(std::move(rows)));
  return source_stage(std::move(source));
}

}  // namespace

StageKind npy_source() { return {"npy", 0, numpy_signature, open_npy}; }

}  // namespace troupe
