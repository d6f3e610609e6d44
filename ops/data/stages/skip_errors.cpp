// `skip_errors MOST`: omits examples that cannot be read, parsed or computed, up to MOST in a pass;
// one more is an error. Each is logged once, as a warning.
#include <unordered_set>

#include "core/hash.hpp"
#include "core/log.hpp"
#include "ops/data/stack.hpp"
#include "ops/data/stage_kind.hpp"

namespace troupe {

namespace {

// The errors logged already, in this pass or another. One user, that of the stage.
class ToldErrors {
 public:
  void tell(const Status& status, std::uint64_t skipped, std::uint64_t most) {
    constexpr std::size_t kMostKept = 100'000;
    if (told_.size() == kMostKept) told_.clear();
    if (!told_.insert(hash_text(status.text())).second) return;
    TROUPE_LOG(warning, "dataset",
               "skipped an example (" + std::to_string(skipped) + " of at most " +
                   std::to_string(most) + " in this pass): " + status.text());
  }

 private:
  std::unordered_set<std::uint64_t> told_;
};

class SkipErrorsPass final : public Pass {
 public:
  SkipErrorsPass(std::unique_ptr<Pass> input, std::uint64_t most, ToldErrors& told)
      : input_(std::move(input)), most_(most), told_(told) {}
  SkipErrorsPass(const SkipErrorsPass& other)
      : input_(other.input_->clone()),
        most_(other.most_),
        skipped_(other.skipped_),
        told_(other.told_) {}

  // Whether an example is valid is known only once its values are read.
  Expected<std::optional<Example>> next() override {
    for (;;) {
      auto example = input_->next();
      if (!example.ok()) {
        if (!is_of_data(example.status()) || !input_->goes_on()) return example.status();
        TROUPE_TRY(skip_one(example.status()));
        continue;
      }
      if (!*example || (*example)->source == nullptr) return example;
      auto values = values_of(**example);
      if (values.ok())
        return std::optional(Example{nullptr, 0, std::move(*values), origin_of(**example)});
      const Status failed = in_example(values.status(), **example);
      if (!is_of_data(failed)) return failed;
      TROUPE_TRY(skip_one(failed));
    }
  }
  std::unique_ptr<Pass> clone() const override { return std::make_unique<SkipErrorsPass>(*this); }
  std::size_t bytes_held() const override { return sizeof *this + input_->bytes_held(); }

 private:
  Status skip_one(const Status& status) {
    if (skipped_ == most_)
      return most_ == 0 ? status
                        : status.in("after " + std::to_string(most_) +
                                    " examples were skipped, as many as may be");
    told_.tell(status, ++skipped_, most_);
    return ok_status();
  }

  std::unique_ptr<Pass> input_;
  std::uint64_t most_, skipped_ = 0;
  ToldErrors& told_;  // the stage's
};

class SkipErrorsStage final : public Stage {
 public:
  SkipErrorsStage(StagePtr input, std::uint64_t most)
      : Stage(input->signature()),
        input_(std::move(input)),
        most_(most),
        told_(std::make_unique<ToldErrors>()) {}
  std::optional<std::uint64_t> count() const override { return std::nullopt; }
  bool direct() const override { return false; }
  bool steady() const override { return false; }
  std::unique_ptr<Pass> pass(std::uint64_t number) const override {
    return std::make_unique<SkipErrorsPass>(input_->pass(number), most_, *told_);
  }

 private:
  StagePtr input_;
  std::uint64_t most_;
  std::unique_ptr<ToldErrors> told_;
};

Expected<Signature> signature_of_skip_errors(const StageText& stage,
                                             const std::vector<Signature>& inputs) {
  TROUPE_TRY(stage.takes(1, 1));
  TROUPE_TRY(stage.number(0, 0));
  return inputs[0];
}

Expected<StagePtr> open_skip_errors(const StageText& stage, Signature, Stages inputs,
                                    StageOpening&) {
  TROUPE_TRY(const std::int64_t most, stage.number(0, 0));
  return StagePtr(std::make_unique<SkipErrorsStage>(std::move(inputs[0]), std::uint64_t(most)));
}

}  // namespace

StageKind skip_errors_stage() {
  return {"skip_errors", 1, signature_of_skip_errors, open_skip_errors};
}

}  // namespace troupe
