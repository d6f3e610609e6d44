// `lines CHARACTERS`: the lines of a text file, each as the numbers of its characters, i64
// [length], without the line end ("\n" or "\r\n"). CHARACTERS is the vocabulary; if empty, that of
// the whole file, including its line ends. The file, plain or gzipped, is read from start to end.
#include <algorithm>

#include "ops/data/byte_stream.hpp"
#include "ops/data/stage_kind.hpp"
#include "ops/data/vocabulary.hpp"

namespace troupe {

namespace {

constexpr std::size_t kLongestLine = std::size_t{16} << 20;

Signature lines_signature() { return {{DType::i64, {PartialShape::kUnknown}}}; }

class LinesCursor final : public Cursor {
 public:
  LinesCursor(ByteStream stream, const data::Vocabulary& vocabulary)
      : stream_(std::move(stream)), vocabulary_(vocabulary) {}
  Expected<std::optional<std::vector<Tensor>>> next() override {
    std::string line;
    goes_on_ = false;
    TROUPE_TRY(const bool found, read_line(line));
    goes_on_ = true;
    if (!found) return std::optional<std::vector<Tensor>>();
    ++number_;
    TROUPE_TRY(Tensor ids, Tensor::make(DType::i64, Shape{std::int64_t(line.size())}));
    for (std::size_t i = 0; i < line.size(); ++i) {
      ids.mutable_data<std::int64_t>()[i] = vocabulary_.number(line[i]);
      if (vocabulary_.number(line[i]) < 0)
        return wrong("character " + std::to_string(std::uint8_t(line[i])) +
                     " is not in the vocabulary");
    }
    return std::optional(std::vector<Tensor>{std::move(ids)});
  }
  bool goes_on() const override { return goes_on_; }
  std::unique_ptr<Cursor> clone() const override { return std::make_unique<LinesCursor>(*this); }
  std::size_t bytes_held() const override { return sizeof *this + stream_.bytes_held(); }

 private:
  Status wrong(const std::string& why) const {
    return in_file(data_loss("line " + std::to_string(number_) + ": " + why), stream_.file());
  }
  // False at the end.
  Expected<bool> read_line(std::string& line) {
    for (bool any = false;; any = true) {
      TROUPE_TRY(const std::string_view chunk, stream_.chunk());
      if (chunk.empty()) return any;
      const std::size_t end = chunk.find('\n');
      const std::size_t n = std::min(end, chunk.size());
      if (line.size() + n > kLongestLine) {
        ++number_;
        return wrong("longer than " + std::to_string(kLongestLine) + " characters");
      }
      line.append(chunk.substr(0, n));
      stream_.consume(end == std::string_view::npos ? n : n + 1);
      if (end == std::string_view::npos) continue;
      if (line.ends_with('\r')) line.pop_back();
      return true;
    }
  }

  ByteStream stream_;
  const data::Vocabulary& vocabulary_;  // the source's
  std::uint64_t number_ = 0;            // of the last line, from 1
  bool goes_on_ = false;                // behind it
};

class LinesSource final : public Source {
 public:
  LinesSource(DataFilePtr file, data::Vocabulary vocabulary)
      : Source(lines_signature()), file_(std::move(file)), vocabulary_(std::move(vocabulary)) {}
  Expected<std::unique_ptr<Cursor>> start() const override {
    TROUPE_TRY(ByteStream stream, ByteStream::open(file_));
    return std::unique_ptr<Cursor>(std::make_unique<LinesCursor>(std::move(stream), vocabulary_));
  }

 private:
  DataFilePtr file_;
  data::Vocabulary vocabulary_;
};

Expected<Signature> signature_of_lines(const StageText& stage, const std::vector<Signature>&) {
  TROUPE_TRY(stage.takes(1, 1));
  return lines_signature();
}

Expected<StagePtr> open_lines(const StageText& stage, Signature, Stages, StageOpening& opening) {
  TROUPE_TRY(DataFilePtr file, opening.next_file());
  TROUPE_TRY(const std::string characters, stage.word(0));
  data::Vocabulary vocabulary(characters);
  if (vocabulary.size() == 0) {
    TROUPE_TRY(vocabulary, data::Vocabulary::try_of_file(file));
  }
  return source_stage(std::make_unique<LinesSource>(std::move(file), std::move(vocabulary)));
}

}  // namespace

StageKind lines_source() { return {"lines", 0, signature_of_lines, open_lines}; }

}  // namespace troupe
