// `text_lines FILES`: the lines of text files, plain or gzipped, string [], without line ends ("\n"
// or "\r\n"), file after file, read from start to end.
#include <algorithm>

#include "ops/data/byte_stream.hpp"
#include "ops/data/stage_kind.hpp"

namespace troupe {

namespace {

constexpr std::size_t kLongestTextLine = std::size_t{64} << 20;

Signature text_signature() { return {{DType::string, PartialShape::scalar()}}; }

// An error in packed content ends its file; reading continues with the next file.
class TextLinesCursor final : public Cursor {
 public:
  explicit TextLinesCursor(const std::vector<DataFilePtr>& files) : files_(files) {}
  Expected<std::optional<std::vector<Tensor>>> next() override {
    Tensor value = Tensor::scalar(std::string_view());
    TROUPE_TRY(const bool found, read_line(*value.mutable_data<std::string>()));
    if (!found) return std::optional<std::vector<Tensor>>();
    return std::optional(std::vector<Tensor>{std::move(value)});
  }
  bool goes_on() const override { return true; }
  Origin origin() const override { return origin_; }
  std::unique_ptr<Cursor> clone() const override {
    return std::make_unique<TextLinesCursor>(*this);
  }
  std::size_t bytes_held() const override {
    return sizeof *this + (stream_ ? stream_->bytes_held() : 0);
  }

 private:
  void end_of_file() {
    stream_.reset();
    files_[file_++]->rest();
    line_ = 0;
  }
  // False at the end of the last file.
  Expected<bool> read_line(std::string& line) {
    for (; file_ < files_.size(); end_of_file()) {
      origin_ = {files_[file_].get(), line_, stream_ ? stream_->offset() : 0};
      const auto found = read_line_of_file(line);
      if (!found.ok()) end_of_file();
      if (!found.ok()) return found.status();
      if (*found) {
        ++line_;
        return true;
      }
    }
    return false;
  }
  // False at the end of the file.
  Expected<bool> read_line_of_file(std::string& line) {
    if (!stream_) {
      TROUPE_TRY(ByteStream opened, ByteStream::open(files_[file_]));
      stream_.emplace(std::move(opened));
    }
    for (bool any = false;; any = true) {
      TROUPE_TRY(const std::string_view chunk, stream_->chunk());
      if (chunk.empty()) return any;
      const std::size_t end = chunk.find('\n');
      const std::size_t n = std::min(end, chunk.size());
      if (line.size() + n > kLongestTextLine)
        return data_loss(origin_.text() + ": a line of more than " +
                         std::to_string(kLongestTextLine) + " bytes");
      line.append(chunk.substr(0, n));
      stream_->consume(end == std::string_view::npos ? n : n + 1);
      if (end == std::string_view::npos) continue;
      if (line.ends_with('\r')) line.pop_back();
      return true;
    }
  }

  const std::vector<DataFilePtr>& files_;  // the source's
  std::size_t file_ = 0;
  std::optional<ByteStream> stream_;  // of that file, once it is open
  std::uint64_t line_ = 0;
  Origin origin_;
};

class TextLinesSource final : public Source {
 public:
  explicit TextLinesSource(std::vector<DataFilePtr> files)
      : Source(text_signature()), files_(std::move(files)) {}
  Expected<std::unique_ptr<Cursor>> start() const override {
    return std::unique_ptr<Cursor>(std::make_unique<TextLinesCursor>(files_));
  }

 private:
  std::vector<DataFilePtr> files_;
};

Expected<Signature> signature_of_text_lines(const StageText& stage, const std::vector<Signature>&) {
  TROUPE_TRY(stage.takes(1, 1));
  TROUPE_TRY(stage.files(0));
  return text_signature();
}

Expected<StagePtr> open_text_lines(const StageText& stage, Signature, Stages,
                                   StageOpening& opening) {
  TROUPE_TRY(const std::int64_t n, stage.files(0));
  TROUPE_TRY(auto files, opening.next_files(n));
  return source_stage(std::make_unique<TextLinesSource>(std::move(files)));
}

}  // namespace

StageKind text_lines_source() {
  return {"text_lines", 0, signature_of_text_lines, open_text_lines};
}

}  // namespace troupe
