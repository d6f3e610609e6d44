// `cache BYTES`: keeps the examples of the first pass in memory and repeats them in every pass.
// They are read on first use, in order. More than BYTES of them are an error.
#include <algorithm>

#include "ops/data/stack.hpp"
#include "ops/data/stage_kind.hpp"

namespace troupe {

namespace {

// The part of the input's first pass that has been read. Its content does not depend on who read
// it, so the stage is immutable in effect. One user, that of the stage.
class KeptExamples {
 public:
  KeptExamples(const Stage& input, std::uint64_t most_bytes)
      : input_(input), most_bytes_(most_bytes) {}

  std::uint64_t size() const { return examples_.size(); }
  bool whole() const { return whole_; }
  const Example& operator[](std::uint64_t i) const { return examples_[i]; }

  // Reads until there are that many, or the input ends. After an error, or without memory, the pass
  // is dropped; the next call makes a new one and skips to the same place.
  Status reach(std::uint64_t size) {
    std::unique_ptr<Pass> pass = std::move(pass_);
    while (!whole_ && examples_.size() < size) {
      if (!pass) {
        pass = input_.pass(0);
        TROUPE_TRY(pass->skip(examples_.size()));
      }
      TROUPE_TRY(auto example, pass->next());
      if (!example) {
        whole_ = true;
        break;
      }
      auto values = values_of(*example);
      if (!values.ok()) return in_example(values.status(), *example);
      Example kept{nullptr, 0, std::move(*values), origin_of(*example)};
      const std::uint64_t bytes = bytes_of(kept);
      if (bytes_ + bytes > most_bytes_)
        return resource_exhausted("a cache of more than " + std::to_string(most_bytes_) +
                                  " bytes, at example " + std::to_string(examples_.size()));
      examples_.push_back(std::move(kept));
      bytes_ += bytes;
    }
    if (!whole_) pass_ = std::move(pass);
    return ok_status();
  }

 private:
  const Stage& input_;
  const std::uint64_t most_bytes_;
  std::unique_ptr<Pass> pass_;  // behind the kept examples; null: at the start or after an error
  std::vector<Example> examples_;
  std::uint64_t bytes_ = 0;
  bool whole_ = false;
};

class CachePass final : public Pass {
 public:
  explicit CachePass(KeptExamples& kept) : kept_(kept) {}
  Expected<std::optional<Example>> next() override {
    TROUPE_TRY(kept_.reach(next_ + 1));
    if (next_ >= kept_.size()) return std::optional<Example>();
    return std::optional(kept_[next_++]);
  }
  Expected<std::uint64_t> skip(std::uint64_t n) override {
    const std::uint64_t wanted = n > kEndless - next_ ? kEndless : next_ + n;
    TROUPE_TRY(kept_.reach(wanted));
    const std::uint64_t passed = std::min(n, kept_.size() - next_);
    next_ += passed;
    return passed;
  }
  std::unique_ptr<Pass> clone() const override { return std::make_unique<CachePass>(*this); }
  std::size_t bytes_held() const override { return sizeof *this; }

 private:
  KeptExamples& kept_;  // the stage's
  std::uint64_t next_ = 0;
};

class CacheStage final : public Stage {
 public:
  CacheStage(StagePtr input, std::uint64_t most_bytes)
      : Stage(input->signature()),
        input_(std::move(input)),
        kept_(std::make_unique<KeptExamples>(*input_, most_bytes)) {}
  std::optional<std::uint64_t> count() const override {
    return kept_->whole() ? kept_->size() : input_->count();
  }
  bool direct() const override { return false; }
  bool steady() const override { return true; }
  std::unique_ptr<Pass> pass(std::uint64_t) const override {
    return std::make_unique<CachePass>(*kept_);
  }

 private:
  StagePtr input_;
  std::unique_ptr<KeptExamples> kept_;
};

Expected<Signature> signature_of_cache(const StageText& stage,
                                       const std::vector<Signature>& inputs) {
  TROUPE_TRY(stage.takes(1, 1));
  TROUPE_TRY(stage.number(0, 1));
  return inputs[0];
}

Expected<StagePtr> open_cache(const StageText& stage, Signature, Stages inputs, StageOpening&) {
  TROUPE_TRY(const std::int64_t bytes, stage.number(0, 1));
  if (inputs[0]->count() == kEndless)
    return invalid_argument("a cache of examples without end: repeat them behind it");
  return StagePtr(std::make_unique<CacheStage>(std::move(inputs[0]), std::uint64_t(bytes)));
}

}  // namespace

StageKind cache_stage() { return {"cache", 1, signature_of_cache, open_cache}; }

}  // namespace troupe
