#include "ops/data/stage_kind.hpp"

#include <algorithm>
#include <array>
#include <iterator>

#include "core/hash.hpp"

namespace troupe {

// Defined in the files of sources/ and stages/.
StageKind cifar10_source(), csv_source(), digits_source(), fixed_records_source(), idx_source(),
    image_folder_source(), labelled_files_source(), lines_source(), npy_source(), npz_source(),
    range_source(), shapes_source(), tales_source(), tensors_source(), text_source(),
    text_lines_source(), tf_records_source(), whole_files_source();
StageKind batch_stage(), bucket_stage(), cache_stage(), decode_image_stage(), filter_stage(),
    interleave_stage(), map_stage(), padded_batch_stage(), parse_example_stage(), repeat_stage(),
    shard_stage(), shuffle_stage(), skip_errors_stage(), skip_stage(), take_stage(),
    unbatch_stage(), zip_stage();

namespace {

const std::vector<StageKind>& kinds() {
  static const std::vector<StageKind> all = {cifar10_source(),
                                             csv_source(),
                                             digits_source(),
                                             fixed_records_source(),
                                             idx_source(),
                                             image_folder_source(),
                                             labelled_files_source(),
                                             lines_source(),
                                             npy_source(),
                                             npz_source(),
                                             range_source(),
                                             shapes_source(),
                                             tales_source(),
                                             tensors_source(),
                                             text_source(),
                                             tf_records_source(),
                                             text_lines_source(),
                                             whole_files_source(),
                                             batch_stage(),
                                             bucket_stage(),
                                             cache_stage(),
                                             decode_image_stage(),
                                             filter_stage(),
                                             interleave_stage(),
                                             map_stage(),
                                             padded_batch_stage(),
                                             parse_example_stage(),
                                             repeat_stage(),
                                             shard_stage(),
                                             shuffle_stage(),
                                             skip_errors_stage(),
                                             skip_stage(),
                                             take_stage(),
                                             unbatch_stage(),
                                             zip_stage()};
  return all;
}

constexpr std::size_t kMostStages = 10'000;

// Evaluates a list of stages in postfix order, with a stack of results.
template <class T, class Make>
Expected<T> fold(const std::vector<std::string>& stages, Make make) {
  if (stages.size() > kMostStages)
    return invalid_argument("a pipeline of " + std::to_string(stages.size()) + " stages");
  std::vector<T> made;
  for (const std::string& text : stages) {
    TROUPE_TRY(const StageText stage, StageText::parse(text));
    const auto kind = std::find_if(kinds().begin(), kinds().end(),
                                   [&](const StageKind& k) { return k.name == stage.name; });
    if (kind == kinds().end())
      return invalid_argument("there is no stage or source '" + stage.name + "'");
    std::int64_t inputs = kind->inputs;
    if (inputs == StageKind::kSomeInputs) {
      TROUPE_TRY(inputs, stage.number(0, 0));
      if (inputs == 0) return invalid_argument(stage.name + ": the list of datasets is empty");
    }
    if (std::uint64_t(inputs) > made.size())
      return invalid_argument("stage '" + text + "' has no stage to stand on");
    const auto first = made.end() - inputs;
    std::vector<T> below(std::make_move_iterator(first), std::make_move_iterator(made.end()));
    made.erase(first, made.end());
    TROUPE_TRY(T next, make(*kind, stage, std::move(below)));
    made.push_back(std::move(next));
  }
  if (made.size() != 1)
    return invalid_argument("the stages of a pipeline end in " + std::to_string(made.size()) +
                            ", not in one");
  return std::move(made[0]);
}

// A pass over a source with random access; it reads nothing, but returns positions.
class PlacesPass final : public Pass {
 public:
  explicit PlacesPass(const Source& source) : source_(source) {}
  Expected<std::optional<Example>> next() override {
    if (next_ == *source_.count()) return std::optional<Example>();
    return std::optional(Example{&source_, next_++, {}, {}});
  }
  Expected<std::uint64_t> skip(std::uint64_t n) override {
    const std::uint64_t passed = std::min(n, *source_.count() - next_);
    next_ += passed;
    return passed;
  }
  std::unique_ptr<Pass> clone() const override { return std::make_unique<PlacesPass>(*this); }
  std::size_t bytes_held() const override { return sizeof *this; }

 private:
  const Source& source_;
  std::uint64_t next_ = 0;
};

class CursorPass final : public Pass {
 public:
  explicit CursorPass(const Source& source) : source_(source) {}
  Expected<std::optional<Example>> next() override {
    if (!cursor_) {
      TROUPE_TRY(cursor_, source_.start());
    }
    TROUPE_TRY(auto values, cursor_->next());
    if (!values) return std::optional<Example>();
    return std::optional(Example{nullptr, 0, std::move(*values), cursor_->origin()});
  }
  Expected<std::uint64_t> skip(std::uint64_t n) override {
    if (!cursor_) {
      TROUPE_TRY(cursor_, source_.start());
    }
    return cursor_->skip(n);
  }
  bool goes_on() const override { return cursor_ && cursor_->goes_on(); }
  std::unique_ptr<Pass> clone() const override {
    auto copy = std::make_unique<CursorPass>(source_);
    if (cursor_) copy->cursor_ = cursor_->clone();
    return copy;
  }
  std::size_t bytes_held() const override {
    return sizeof *this + (cursor_ ? cursor_->bytes_held() : 0);
  }

 private:
  const Source& source_;
  std::unique_ptr<Cursor> cursor_;
};

class SourceStage final : public Stage {
 public:
  explicit SourceStage(std::unique_ptr<const Source> source)
      : Stage(source->signature()), source_(std::move(source)) {}
  std::optional<std::uint64_t> count() const override { return source_->count(); }
  bool direct() const override { return source_->count().has_value(); }
  bool steady() const override { return true; }
  std::unique_ptr<Pass> pass(std::uint64_t) const override {
    if (direct()) return std::make_unique<PlacesPass>(*source_);
    return std::make_unique<CursorPass>(*source_);
  }

 private:
  std::unique_ptr<const Source> source_;
};

}  // namespace

std::size_t functions_wanted(const std::vector<std::string>& stages) {
  std::size_t functions = 0;
  for (const std::string& text : stages) {
    const std::string_view name = std::string_view(text).substr(0, text.find(' '));
    for (const StageKind& kind : kinds())
      if (kind.name == name) functions += std::size_t(kind.functions);
  }
  return functions;
}

StagePtr source_stage(std::unique_ptr<const Source> source) {
  return std::make_unique<SourceStage>(std::move(source));
}

Expected<DataFilePtr> StageOpening::next_file() {
  if (file_ == files_.size())
    return invalid_argument("the pipeline has more sources than its " +
                            std::to_string(files_.size()) + " files are for");
  TROUPE_TRY(DataFilePtr file, open_plain_or_packed(files_[file_++], open_));
  if (files_.size() > kMostOpen) file->rest();
  return file;
}

Expected<std::vector<DataFilePtr>> StageOpening::next_files(std::int64_t n) {
  std::vector<DataFilePtr> files;
  for (std::int64_t i = 0; i < n; ++i) {
    TROUPE_TRY(DataFilePtr file, next_file());
    files.push_back(std::move(file));
  }
  return files;
}

Expected<std::string_view> StageOpening::next_tensor() {
  if (tensor_ == tensors_.size())
    return invalid_argument("the pipeline has fewer tensors than its sources want");
  return std::string_view(tensors_[tensor_++]);
}

Expected<StageOpening::Function> StageOpening::next_function() {
  if (function_ == functions_.size())
    return invalid_argument("the pipeline has fewer functions than its stages want");
  const std::uint64_t draws = hash_combine(seed_, function_);
  return Function{functions_[function_++], draws};
}

Expected<Signature> pipeline_signature(const std::vector<std::string>& stages) {
  return fold<Signature>(
      stages, [](const StageKind& kind, const StageText& stage, std::vector<Signature> inputs) {
        return kind.signature(stage, inputs);
      });
}

Expected<StagePtr> open_stages(const std::vector<std::string>& stages, StageOpening& opening) {
  TROUPE_TRY(
      StagePtr opened,
      fold<StagePtr>(
          stages,
          [&](const StageKind& kind, const StageText& stage, Stages inputs) -> Expected<StagePtr> {
            std::vector<Signature> below;
            for (const StagePtr& input : inputs) below.push_back(input->signature());
            TROUPE_TRY(Signature signature, kind.signature(stage, below));
            return kind.open(stage, std::move(signature), std::move(inputs), opening);
          }));
  if (!opening.all_taken())
    return invalid_argument(
        "the pipeline has files, tensors or functions that none of its stages takes");
  return opened;
}

}  // namespace troupe
