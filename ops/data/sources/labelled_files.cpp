// `labelled_files PATH`: the files in a folder's subfolders, unchanged, string [], and the indices
// of the subfolders, i64 []. Random access.
#include "ops/data/sources/labelled_folder.hpp"
#include "ops/data/stage_kind.hpp"

namespace troupe {

namespace {

Signature files_signature() {
  return {{DType::string, PartialShape::scalar()}, {DType::i64, PartialShape::scalar()}};
}

class LabelledFilesSource final : public LabelledFolderSource {
 public:
  explicit LabelledFilesSource(LabelledFolder folder)
      : LabelledFolderSource(files_signature(), std::move(folder)) {}
  Status read(std::uint64_t first, std::int64_t n, std::span<Tensor> out,
              std::int64_t row) const override {
    for (std::int64_t i = 0; i < n; ++i) {
      const std::uint64_t file = first + std::uint64_t(i);
      TROUPE_TRY(out[0].mutable_data<std::string>()[row + i], folder().content(file));
      out[1].mutable_data<std::int64_t>()[row + i] = folder().label(file);
    }
    return ok_status();
  }
};

Expected<Signature> signature_of_labelled_files(const StageText& stage,
                                                const std::vector<Signature>&) {
  TROUPE_TRY(stage.takes(1, 1));
  return files_signature();
}

Expected<StagePtr> open_labelled_files(const StageText& stage, Signature, Stages, StageOpening&) {
  TROUPE_TRY(LabelledFolder folder, LabelledFolder::list(stage.arguments[0], false));
  return source_stage(std::make_unique<LabelledFilesSource>(std::move(folder)));
}

}  // namespace

StageKind labelled_files_source() {
  return {"labelled_files", 0, signature_of_labelled_files, open_labelled_files};
}

}  // namespace troupe
