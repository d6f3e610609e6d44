// `npz {NAME DTYPE SHAPE}...`: the rows of arrays of an NPZ file, one array per component, each
// with its required type.
#include "ops/data/arrays/npy.hpp"
#include "ops/data/arrays/zip_archive.hpp"
#include "ops/data/byte_stream.hpp"
#include "ops/data/stage_kind.hpp"

namespace troupe {

namespace {

Expected<StagePtr> open_npz(const StageText& stage, Signature, Stages, StageOpening& opening) {
  TROUPE_TRY(const auto arrays, parse_numpy_words(stage, 0));
  TROUPE_TRY(DataFilePtr file, opening.next_file());
  TROUPE_TRY(const ZipArchive archive, ZipArchive::open(std::move(file)));
  std::vector<NpyRows> rows;
  for (const data::NumpyArray& array : arrays) {
    TROUPE_TRY(DataFilePtr member, archive.member(array.name + ".npy", kMostUnpacked));
    TROUPE_TRY(NpyRows opened, NpyRows::open(std::move(member), array.dtype, array.shape));
    rows.push_back(std::move(opened));
  }
  TROUPE_TRY(auto source, numpy_source(std::move(rows)));
  return source_stage(std::move(source));
}

}  // namespace

StageKind npz_source() { return {"npz", 0, numpy_signature, open_npz}; }

}  // namespace troupe
