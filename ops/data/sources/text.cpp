// `text WINDOW STRIDE FROM TO CHARACTERS`: windows of a text file's part [FROM, TO), two fractions.
// Window i begins at character i * STRIDE of it. An example is the numbers of its WINDOW
// characters, i64 [WINDOW], and of the characters that follow each of them. CHARACTERS is the
// vocabulary; if empty, that of the whole file.
//
// A plain file has random access; a gzipped one is read from start to end, without FROM and TO.
//
// `tales SEED LENGTH WINDOW STRIDE FROM TO`: the same for LENGTH characters of generated text
// (ops/data/tales.hpp), with its own vocabulary. The text is kept in memory.
#include <algorithm>
#include <cmath>

#include "ops/data/byte_stream.hpp"
#include "ops/data/stage_kind.hpp"
#include "ops/data/tales.hpp"
#include "ops/data/vocabulary.hpp"

namespace troupe {

namespace {

constexpr std::int64_t kMostInWindow = std::int64_t{1} << 24;
constexpr std::int64_t kMostTales = std::int64_t{1} << 26;

struct TextSpec {
  std::int64_t window = 1, stride = 1;
  double from = 0, to = 1;
  data::Vocabulary vocabulary;
};

Signature text_windows(const TextSpec& spec) {
  return {{DType::i64, {spec.window}}, {DType::i64, {spec.window}}};
}

// Writes the numbers of one window's characters, and of those that follow each. `at`: the window's
// offset in the file.
Status number_window(const TextSpec& spec, std::string_view characters, std::uint64_t at,
                     std::int64_t* x, std::int64_t* y) {
  for (std::size_t i = 0; i < characters.size(); ++i) {
    const std::int64_t number = spec.vocabulary.number(characters[i]);
    if (number < 0)
      return data_loss("character " + std::to_string(std::uint8_t(characters[i])) + " at byte " +
                       std::to_string(at + i) + " is not in the vocabulary");
    if (i + 1 < characters.size()) x[i] = number;
    if (i > 0) y[i - 1] = number;
  }
  return ok_status();
}

class TextSource final : public Source {
 public:
  TextSource(DataFilePtr file, TextSpec spec)
      : Source(text_windows(spec)), file_(std::move(file)), spec_(std::move(spec)) {
    begin_ = std::uint64_t(std::floor(spec_.from * double(file_->size())));
    const auto end = std::uint64_t(std::floor(spec_.to * double(file_->size())));
    const auto needed = std::uint64_t(spec_.window) + 1;
    if (end >= begin_ + needed) count_ = (end - begin_ - needed) / std::uint64_t(spec_.stride) + 1;
  }
  std::optional<std::uint64_t> count() const override { return count_; }
  Status read(std::uint64_t first, std::int64_t n, std::span<Tensor> out,
              std::int64_t row) const override {
    std::string characters(std::size_t(spec_.window + 1), '\0');
    for (std::int64_t i = 0; i < n; ++i) {
      const std::uint64_t at = begin_ + (first + std::uint64_t(i)) * std::uint64_t(spec_.stride);
      TROUPE_TRY(file_->read_at(at, characters));
      const std::int64_t to = (row + i) * spec_.window;
      Status numbered =
          number_window(spec_, characters, at, out[0].mutable_data<std::int64_t>() + to,
                        out[1].mutable_data<std::int64_t>() + to);
      if (!numbered.ok()) return in_file(numbered, *file_);
    }
    return ok_status();
  }

 private:
  DataFilePtr file_;
  TextSpec spec_;
  std::uint64_t begin_ = 0, count_ = 0;
};

// Reads gzipped text; keeps the overlap of the last window with the next.
class TextCursor final : public Cursor {
 public:
  TextCursor(ByteStream stream, const TextSpec& spec) : stream_(std::move(stream)), spec_(spec) {}
  Expected<std::optional<std::vector<Tensor>>> next() override {
    TROUPE_TRY(const bool filled, fill());
    if (!filled) return std::optional<std::vector<Tensor>>();
    TROUPE_TRY(Tensor x, Tensor::make(DType::i64, Shape{spec_.window}));
    TROUPE_TRY(Tensor y, Tensor::make(DType::i64, Shape{spec_.window}));
    Status numbered = number_window(spec_, kept_, at_, x.mutable_data<std::int64_t>(),
                                    y.mutable_data<std::int64_t>());
    if (!numbered.ok()) return in_file(numbered, stream_.file());
    ahead_ = std::uint64_t(spec_.stride);
    return std::optional(std::vector<Tensor>{std::move(x), std::move(y)});
  }
  std::unique_ptr<Cursor> clone() const override { return std::make_unique<TextCursor>(*this); }
  std::size_t bytes_held() const override {
    return sizeof *this + kept_.capacity() + stream_.bytes_held();
  }

 private:
  // Moves to the next window; false if there are not enough characters for it.
  Expected<bool> fill() {
    const std::uint64_t known = std::min<std::uint64_t>(ahead_, kept_.size());
    kept_.erase(0, known);
    at_ += ahead_;
    ahead_ -= known;
    while (kept_.size() < std::size_t(spec_.window) + 1) {
      TROUPE_TRY(const std::string_view chunk, stream_.chunk());
      if (chunk.empty()) return false;
      const auto passed = std::size_t(std::min<std::uint64_t>(ahead_, chunk.size()));
      ahead_ -= passed;
      const std::size_t taken =
          std::min(chunk.size() - passed, std::size_t(spec_.window) + 1 - kept_.size());
      kept_.append(chunk.substr(passed, taken));
      stream_.consume(passed + taken);
    }
    return true;
  }

  ByteStream stream_;
  const TextSpec& spec_;     // the source's
  std::string kept_;         // text of the last window
  std::uint64_t at_ = 0;     // offset of that window
  std::uint64_t ahead_ = 0;  // from there to the next window
};

class PackedTextSource final : public Source {
 public:
  PackedTextSource(DataFilePtr file, TextSpec spec)
      : Source(text_windows(spec)), file_(std::move(file)), spec_(std::move(spec)) {}
  Expected<std::unique_ptr<Cursor>> start() const override {
    TROUPE_TRY(ByteStream stream, ByteStream::open(file_));
    return std::unique_ptr<Cursor>(std::make_unique<TextCursor>(std::move(stream), spec_));
  }

 private:
  DataFilePtr file_;
  TextSpec spec_;
};

// WINDOW STRIDE FROM TO, from word `first` on.
Expected<TextSpec> windows_spec(const StageText& stage, std::size_t first) {
  TextSpec spec;
  TROUPE_TRY(spec.window, stage.number(first, 1));
  TROUPE_TRY(spec.stride, stage.number(first + 1, 1));
  TROUPE_TRY(spec.from, stage.real(first + 2));
  TROUPE_TRY(spec.to, stage.real(first + 3));
  if (spec.window > kMostInWindow)
    return invalid_argument("a window of " + std::to_string(spec.window) + " characters; " +
                            std::to_string(kMostInWindow) + " are possible");
  if (!(spec.from >= 0 && spec.from <= spec.to && spec.to <= 1))
    return invalid_argument("a text's part is two fractions from 0 to 1, the first not the larger");
  return spec;
}

Expected<TextSpec> text_spec(const StageText& stage) {
  TROUPE_TRY(stage.takes(5, 5));
  TROUPE_TRY(TextSpec spec, windows_spec(stage, 0));
  TROUPE_TRY(const std::string characters, stage.word(4));
  spec.vocabulary = data::Vocabulary(characters);
  return spec;
}

Expected<Signature> signature_of_text(const StageText& stage, const std::vector<Signature>&) {
  TROUPE_TRY(const TextSpec spec, text_spec(stage));
  return text_windows(spec);
}

Expected<StagePtr> windows_of(DataFilePtr file, TextSpec spec) {
  const std::int64_t window = spec.window;
  auto source = std::make_unique<TextSource>(file, std::move(spec));
  if (*source->count() == 0)
    return in_file(invalid_argument("a text of " + std::to_string(file->size()) +
                                    " bytes whose part has no window of " + std::to_string(window) +
                                    " and one more characters"),
                   *file);
  return source_stage(std::move(source));
}

Expected<StagePtr> open_text(const StageText& stage, Signature, Stages, StageOpening& opening) {
  TROUPE_TRY(TextSpec spec, text_spec(stage));
  TROUPE_TRY(DataFilePtr file, opening.next_file());
  TROUPE_TRY(const bool packed, is_gzip(*file));
  if (packed && (spec.from != 0 || spec.to != 1))
    return in_file(invalid_argument("a part of a text that gzip has packed cannot be found: "
                                    "unpack it, or split it into files"),
                   *file);
  if (spec.vocabulary.size() == 0) {
    TROUPE_TRY(spec.vocabulary, data::Vocabulary::try_of_file(file));
  }
  if (packed)
    return source_stage(std::make_unique<PackedTextSource>(std::move(file), std::move(spec)));
  return windows_of(std::move(file), std::move(spec));
}

struct TalesSpec {
  std::uint64_t seed = 0;
  std::int64_t length = 0;
  TextSpec windows;
};

Expected<TalesSpec> tales_spec(const StageText& stage) {
  TROUPE_TRY(stage.takes(6, 6));
  TalesSpec spec;
  TROUPE_TRY(spec.seed, stage.seed(0));
  TROUPE_TRY(spec.length, stage.number(1, 1));
  if (spec.length > kMostTales)
    return invalid_argument("tales of " + std::to_string(spec.length) + " characters; " +
                            std::to_string(kMostTales) + " are possible");
  TROUPE_TRY(spec.windows, windows_spec(stage, 2));
  return spec;
}

Expected<Signature> tales_signature(const StageText& stage, const std::vector<Signature>&) {
  TROUPE_TRY(const TalesSpec spec, tales_spec(stage));
  return text_windows(spec.windows);
}

Expected<StagePtr> open_tales(const StageText& stage, Signature, Stages, StageOpening&) {
  TROUPE_TRY(TalesSpec spec, tales_spec(stage));
  std::string text = draw_tales(spec.seed, spec.length);
  spec.windows.vocabulary = data::Vocabulary(text);
  return windows_of(memory_file("drawn tales", std::move(text)), std::move(spec.windows));
}

}  // namespace

StageKind tales_source() { return {"tales", 0, tales_signature, open_tales}; }

StageKind text_source() { return {"text", 0, signature_of_text, open_text}; }

}  // namespace troupe
