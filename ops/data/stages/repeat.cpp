// `repeat N`: N passes, one after the other; -1: endless. Each is another pass of the input, so
// that a shuffle before it has another order in each.
#include <algorithm>

#include "ops/data/stage_kind.hpp"

namespace troupe {

namespace {

class RepeatStage final : public Stage {
 public:
  RepeatStage(StagePtr input, std::uint64_t passes)
      : Stage(input->signature()), input_(std::move(input)), passes_(passes) {}
  std::optional<std::uint64_t> count() const override {
    if (passes_ == 0) return 0;
    const auto below = length();
    if (!below) return std::nullopt;
    if (*below == 0 || *below == kEndless) return below;
    return passes_ > (kEndless - 1) / *below ? kEndless : passes_ * *below;
  }
  bool direct() const override { return input_->direct(); }
  bool steady() const override { return input_->steady(); }
  std::unique_ptr<Pass> pass(std::uint64_t number) const override;

  const Stage& input() const { return *input_; }
  std::uint64_t passes() const { return passes_; }  // kEndless: endless
  // The length of one pass of the input, if known.
  std::optional<std::uint64_t> length() const { return input_->count(); }

 private:
  StagePtr input_;
  std::uint64_t passes_;
};

class RepeatPass final : public Pass {
 public:
  RepeatPass(const RepeatStage& stage, std::uint64_t first)
      : stage_(stage), first_(first), length_(stage.length()) {}
  RepeatPass(const RepeatPass& other)
      : stage_(other.stage_),
        first_(other.first_),
        length_(other.length_),
        number_(other.number_),
        position_(other.position_),
        empty_(other.empty_),
        current_(other.current_ ? other.current_->clone() : nullptr) {}

  Expected<std::optional<Example>> next() override {
    while (begin()) {
      auto example = current_->next();
      if (!example.ok() && goes_on()) ++position_;
      if (!example.ok()) return example.status();
      if (*example) {
        ++position_;
        return example;
      }
      end_of_pass();
    }
    return std::optional<Example>();
  }

  Expected<std::uint64_t> skip(std::uint64_t n) override {
    std::uint64_t passed = 0;
    while (passed < n && begin()) {
      leap(n, passed);
      TROUPE_TRY(const std::uint64_t here, current_->skip(n - passed));
      passed += here;
      position_ += here;
      if (passed < n) end_of_pass();
    }
    return passed;
  }

  bool goes_on() const override { return current_ && current_->goes_on(); }
  std::unique_ptr<Pass> clone() const override { return std::make_unique<RepeatPass>(*this); }
  std::size_t bytes_held() const override {
    return sizeof *this + (current_ ? current_->bytes_held() : 0);
  }

 private:
  // Whether there is another pass.
  bool begin() {
    if (number_ >= stage_.passes()) return false;
    if (!current_) current_ = stage_.input().pass(first_ + number_);
    return true;
  }
  void end_of_pass() {
    const bool steady = stage_.input().steady();
    if (steady) length_ = position_;
    empty_ = position_ == 0 ? empty_ + 1 : 0;
    // Ends if the input is empty: one pass, if all are alike, or kMostEmpty passes in a row.
    number_ = empty_ > 0 && (steady || empty_ == kMostEmpty) ? stage_.passes() : number_ + 1;
    position_ = 0;
    current_.reset();
  }
  // At the beginning of a pass: skips whole passes at once if their length is known.
  void leap(std::uint64_t n, std::uint64_t& passed) {
    if (position_ != 0 || !length_ || *length_ == 0 || *length_ == kEndless) return;
    // Leaves at least one, whose end is then found as usual.
    const std::uint64_t whole = std::min((n - passed) / *length_, stage_.passes() - number_ - 1);
    if (whole == 0) return;
    passed += whole * *length_;
    number_ += whole;
    current_ = stage_.input().pass(first_ + number_);
  }

  const RepeatStage& stage_;
  std::uint64_t first_;
  std::optional<std::uint64_t> length_;  // of each pass, once known
  static constexpr int kMostEmpty = 1000;
  std::uint64_t number_ = 0, position_ = 0;
  int empty_ = 0;  // empty passes in a row
  std::unique_ptr<Pass> current_;
};

std::unique_ptr<Pass> RepeatStage::pass(std::uint64_t number) const {
  return std::make_unique<RepeatPass>(*this, passes_ == kEndless ? number : number * passes_);
}

Expected<Signature> signature_of_repeat(const StageText& stage,
                                        const std::vector<Signature>& inputs) {
  TROUPE_TRY(stage.takes(1, 1));
  TROUPE_TRY(stage.number(0, -1));
  return inputs[0];
}

Expected<StagePtr> open_repeat(const StageText& stage, Signature, Stages inputs, StageOpening&) {
  TROUPE_TRY(const std::int64_t passes, stage.number(0, -1));
  return StagePtr(std::make_unique<RepeatStage>(std::move(inputs[0]),
                                                passes < 0 ? kEndless : std::uint64_t(passes)));
}

}  // namespace

StageKind repeat_stage() { return {"repeat", 1, signature_of_repeat, open_repeat}; }

}  // namespace troupe
