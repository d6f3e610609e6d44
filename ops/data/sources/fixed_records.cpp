// `fixed_records BYTES HEADER FOOTER FILES`: records of BYTES bytes each, u8 [BYTES], file after
// file. The first HEADER and last FOOTER bytes of each file are ignored. A plain file has random
// access; a gzipped one is unpacked in memory. `fixed_records BYTES HEADER FOOTER FILES DTYPE`: the
// bytes are those of numbers, little-endian as this machine's.
#include <algorithm>

#include "ops/data/byte_stream.hpp"
#include "ops/data/stage_kind.hpp"

namespace troupe {

namespace {

constexpr std::int64_t kMostBytes = std::int64_t{1} << 31;

struct FixedSpec {
  std::uint64_t bytes = 1, header = 0, footer = 0;
  std::int64_t files = 0;
  DType dtype = DType::u8;
};

Signature fixed_signature(const FixedSpec& spec) {
  return {{spec.dtype, {std::int64_t(spec.bytes / dtype_size(spec.dtype))}}};
}

class FixedRecordsSource final : public Source {
 public:
  FixedRecordsSource(std::vector<DataFilePtr> files, const FixedSpec& spec)
      : Source(fixed_signature(spec)), files_(std::move(files)), spec_(spec) {
    for (const DataFilePtr& file : files_) {
      begins_.push_back(count_);
      count_ += (file->size() - spec_.header - spec_.footer) / spec_.bytes;
    }
  }
  std::optional<std::uint64_t> count() const override { return count_; }
  Status read(std::uint64_t first, std::int64_t n, std::span<Tensor> out,
              std::int64_t row) const override {
    char* to = out[0].mutable_data<char>() + row * std::int64_t(spec_.bytes);
    const std::uint64_t end = first + std::uint64_t(n);
    for (std::uint64_t example = first; example < end;) {
      const std::size_t f = file_of(example);
      const std::uint64_t last = std::min(end, f + 1 < files_.size() ? begins_[f + 1] : count_);
      const std::uint64_t bytes = (last - example) * spec_.bytes;
      TROUPE_TRY(files_[f]->read_at(origin(example).offset, {to, bytes}));
      if (files_.size() > StageOpening::kMostOpen) files_[f]->rest();
      to += bytes;
      example = last;
    }
    return ok_status();
  }
  Origin origin(std::uint64_t index) const override {
    const std::size_t f = file_of(index);
    const std::uint64_t record = index - begins_[f];
    return {files_[f].get(), record, spec_.header + record * spec_.bytes};
  }

 private:
  // The last one that begins there or before: files without records begin where the next one does.
  std::size_t file_of(std::uint64_t example) const {
    return std::size_t(std::upper_bound(begins_.begin(), begins_.end(), example) - begins_.begin() -
                       1);
  }

  std::vector<DataFilePtr> files_;
  FixedSpec spec_;
  std::vector<std::uint64_t> begins_;  // of each file, in examples
  std::uint64_t count_ = 0;
};

Expected<FixedSpec> fixed_spec(const StageText& stage) {
  TROUPE_TRY(stage.takes(4, 5));
  TROUPE_TRY(const std::int64_t bytes, stage.number(0, 1));
  TROUPE_TRY(const std::int64_t header, stage.number(1, 0));
  TROUPE_TRY(const std::int64_t footer, stage.number(2, 0));
  FixedSpec spec{std::uint64_t(bytes), std::uint64_t(header), std::uint64_t(footer), 0, DType::u8};
  TROUPE_TRY(spec.files, stage.files(3));
  if (stage.arguments.size() == 5) {
    TROUPE_TRY(spec.dtype, stage.dtype(4));
  }
  if (spec.dtype == DType::string || spec.dtype == DType::bool_)
    return invalid_argument("records of " + std::string(dtype_name(spec.dtype)) +
                            ": they are of numbers");
  if (spec.bytes % dtype_size(spec.dtype) != 0)
    return invalid_argument("records of " + std::to_string(bytes) +
                            " bytes are no whole numbers of " +
                            std::string(dtype_name(spec.dtype)));
  if (bytes > kMostBytes)
    return invalid_argument("records of " + std::to_string(bytes) + " bytes; at most " +
                            std::to_string(kMostBytes) + " are possible");
  return spec;
}

Expected<Signature> signature_of_fixed_records(const StageText& stage,
                                               const std::vector<Signature>&) {
  TROUPE_TRY(const FixedSpec spec, fixed_spec(stage));
  return fixed_signature(spec);
}

Status check_size(const DataFile& file, const FixedSpec& spec) {
  // Both are less than 2^63 each.
  if (file.size() < spec.header + spec.footer)
    return in_file(data_loss(std::to_string(file.size()) + " bytes, fewer than the header of " +
                             std::to_string(spec.header) + " and the footer of " +
                             std::to_string(spec.footer)),
                   file);
  const std::uint64_t all = file.size() - spec.header - spec.footer;
  if (all % spec.bytes == 0) return ok_status();
  return in_file(data_loss(std::to_string(all) + " bytes of records are no multiple of " +
                           std::to_string(spec.bytes)),
                 file);
}

Expected<StagePtr> open_fixed_records(const StageText& stage, Signature, Stages,
                                      StageOpening& opening) {
  TROUPE_TRY(const FixedSpec spec, fixed_spec(stage));
  std::vector<DataFilePtr> files;
  for (std::int64_t i = 0; i < spec.files; ++i) {
    TROUPE_TRY(DataFilePtr found, opening.next_file());
    TROUPE_TRY(DataFilePtr file, unpacked(std::move(found)));
    TROUPE_TRY(check_size(*file, spec));
    files.push_back(std::move(file));
  }
  return source_stage(std::make_unique<FixedRecordsSource>(std::move(files), spec));
}

}  // namespace

StageKind fixed_records_source() {
  return {"fixed_records", 0, signature_of_fixed_records, open_fixed_records};
}

}  // namespace troupe
