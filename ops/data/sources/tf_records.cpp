// `tf_records PACKING MOST FILES`: the records of TFRecord files
// (ops/data/records/record_frame.hpp), string [], file after file. PACKING is detect, none, gzip or
// zlib; a record has at most MOST bytes. Files are read from start to end, but plain files without
// the contents of skipped records.
#include <algorithm>

#include "ops/data/records/record_stream.hpp"
#include "ops/data/stage_kind.hpp"

namespace troupe {

namespace {

struct RecordsSpec {
  data::Packing packing = data::Packing::detect;
  std::uint64_t most = 0;
  std::int64_t files = 0;
};

Signature records_signature() { return {{DType::string, PartialShape::scalar()}}; }

// If a file cannot be read further, the rest of it is lost; reading continues with the next file.
class RecordsCursor final : public Cursor {
 public:
  RecordsCursor(const std::vector<DataFilePtr>& files, const RecordsSpec& spec)
      : files_(files), spec_(spec) {}
  Expected<std::optional<std::vector<Tensor>>> next() override {
    Tensor value = Tensor::scalar(std::string_view());
    for (;;) {
      TROUPE_TRY(const bool any, begin());
      if (!any) return std::optional<std::vector<Tensor>>();
      const auto found = stream_->next(*value.mutable_data<std::string>());
      origin_ = stream_->origin();
      if (!found.ok()) {
        if (!stream_->goes_on()) end_of_file();
        return found.status();
      }
      if (*found) {
        std::optional<std::vector<Tensor>> values(std::in_place);
        values->push_back(std::move(value));
        return values;
      }
      end_of_file();
    }
  }
  Expected<std::uint64_t> skip(std::uint64_t n) override {
    for (std::uint64_t passed = 0; passed < n;) {
      const auto skipped = skip_in_file();
      if (!skipped.ok() && !is_of_data(skipped.status())) return skipped.status();
      if (skipped.ok() && !*skipped && file_ == files_.size()) return passed;
      if (!skipped.ok() || *skipped) ++passed;
    }
    return n;
  }
  bool goes_on() const override { return true; }
  Origin origin() const override { return origin_; }
  std::unique_ptr<Cursor> clone() const override { return std::make_unique<RecordsCursor>(*this); }
  std::size_t bytes_held() const override {
    return sizeof *this + (stream_ ? stream_->bytes_held() : 0);
  }

 private:
  // Whether there was another record. The rest of a file that is lost is one.
  Expected<bool> skip_in_file() {
    TROUPE_TRY(const bool any, begin());
    if (!any) return false;
    const auto skipped = stream_->skip();
    origin_ = stream_->origin();
    if (!skipped.ok() || !*skipped) end_of_file();
    return skipped;
  }
  // Whether there is a file to read.
  Expected<bool> begin() {
    if (stream_) return true;
    if (file_ == files_.size()) return false;
    auto opened = RecordStream::open(files_[file_], spec_.packing, spec_.most);
    origin_ = {files_[file_].get(), 0, 0};
    if (!opened.ok()) {
      end_of_file();
      return opened.status();
    }
    stream_.emplace(std::move(*opened));
    return true;
  }
  void end_of_file() {
    stream_.reset();
    files_[file_++]->rest();
  }

  const std::vector<DataFilePtr>& files_;  // the source's
  const RecordsSpec& spec_;                // the source's
  std::size_t file_ = 0;
  std::optional<RecordStream> stream_;  // of that file, once it is open
  Origin origin_;
};

class RecordsSource final : public Source {
 public:
  RecordsSource(std::vector<DataFilePtr> files, const RecordsSpec& spec)
      : Source(records_signature()), files_(std::move(files)), spec_(spec) {}
  Expected<std::unique_ptr<Cursor>> start() const override {
    return std::unique_ptr<Cursor>(std::make_unique<RecordsCursor>(files_, spec_));
  }

 private:
  std::vector<DataFilePtr> files_;
  RecordsSpec spec_;
};

Expected<RecordsSpec> records_spec(const StageText& stage) {
  TROUPE_TRY(stage.takes(3, 3));
  constexpr std::pair<const char*, data::Packing> kPackings[] = {{"detect", data::Packing::detect},
                                                                 {"none", data::Packing::none},
                                                                 {"gzip", data::Packing::gzip},
                                                                 {"zlib", data::Packing::zlib}};
  const auto packing =
      std::find_if(std::begin(kPackings), std::end(kPackings),
                   [&](const auto& named) { return stage.arguments[0] == named.first; });
  if (packing == std::end(kPackings))
    return invalid_argument("'" + stage.arguments[0] + "' is no packing of records");
  RecordsSpec spec{packing->second, 0, 0};
  TROUPE_TRY(const std::int64_t most, stage.number(1, 1));
  spec.most = std::uint64_t(most);
  TROUPE_TRY(spec.files, stage.files(2));
  return spec;
}

Expected<Signature> signature_of_tf_records(const StageText& stage, const std::vector<Signature>&) {
  TROUPE_TRY(records_spec(stage));
  return records_signature();
}

Expected<StagePtr> open_tf_records(const StageText& stage, Signature, Stages,
                                   StageOpening& opening) {
  TROUPE_TRY(const RecordsSpec spec, records_spec(stage));
  TROUPE_TRY(auto files, opening.next_files(spec.files));
  return source_stage(std::make_unique<RecordsSource>(std::move(files), spec));
}

}  // namespace

StageKind tf_records_source() {
  return {"tf_records", 0, signature_of_tf_records, open_tf_records};
}

}  // namespace troupe
