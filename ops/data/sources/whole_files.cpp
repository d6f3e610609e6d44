// `whole_files FILES`: whole files, string []; gzipped files are unpacked. Random access.
#include "ops/data/byte_stream.hpp"
#include "ops/data/stage_kind.hpp"

namespace troupe {

namespace {

Signature whole_files_signature() { return {{DType::string, PartialShape::scalar()}}; }

class WholeFilesSource final : public Source {
 public:
  explicit WholeFilesSource(std::vector<DataFilePtr> files)
      : Source(whole_files_signature()), files_(std::move(files)) {}
  std::optional<std::uint64_t> count() const override { return files_.size(); }
  Status read(std::uint64_t first, std::int64_t n, std::span<Tensor> out,
              std::int64_t row) const override {
    for (std::int64_t i = 0; i < n; ++i) {
      const DataFilePtr& file = files_[first + std::uint64_t(i)];
      TROUPE_TRY(out[0].mutable_data<std::string>()[row + i], read_content(file, kMostInFile));
      if (files_.size() > StageOpening::kMostOpen) file->rest();
    }
    return ok_status();
  }
  Origin origin(std::uint64_t index) const override { return {files_[index].get(), 0, 0}; }

 private:
  std::vector<DataFilePtr> files_;
};

Expected<Signature> signature_of_whole_files(const StageText& stage,
                                             const std::vector<Signature>&) {
  TROUPE_TRY(stage.takes(1, 1));
  TROUPE_TRY(stage.files(0));
  return whole_files_signature();
}

Expected<StagePtr> open_whole_files(const StageText& stage, Signature, Stages,
                                    StageOpening& opening) {
  TROUPE_TRY(const std::int64_t n, stage.files(0));
  TROUPE_TRY(auto files, opening.next_files(n));
  return source_stage(std::make_unique<WholeFilesSource>(std::move(files)));
}

}  // namespace

StageKind whole_files_source() {
  return {"whole_files", 0, signature_of_whole_files, open_whole_files};
}

}  // namespace troupe
