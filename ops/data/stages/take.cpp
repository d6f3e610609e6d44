// `take N`: the first N examples. `skip N`: those after them.
#include <algorithm>

#include "ops/data/stage_kind.hpp"

namespace troupe {

namespace {

class TakePass final : public Pass {
 public:
  TakePass(std::unique_ptr<Pass> input, std::uint64_t left)
      : input_(std::move(input)), left_(left) {}
  Expected<std::optional<Example>> next() override {
    if (left_ == 0) return std::optional<Example>();
    --left_;
    return input_->next();
  }
  Expected<std::uint64_t> skip(std::uint64_t n) override {
    TROUPE_TRY(const std::uint64_t passed, input_->skip(std::min(n, left_)));
    left_ -= passed;
    return passed;
  }
  bool goes_on() const override { return input_->goes_on(); }
  std::unique_ptr<Pass> clone() const override {
    return std::make_unique<TakePass>(input_->clone(), left_);
  }
  std::size_t bytes_held() const override { return sizeof *this + input_->bytes_held(); }

 private:
  std::unique_ptr<Pass> input_;
  std::uint64_t left_;
};

class TakeStage final : public Stage {
 public:
  TakeStage(StagePtr input, std::uint64_t count)
      : Stage(input->signature()), input_(std::move(input)), count_(count) {}
  std::optional<std::uint64_t> count() const override {
    const auto below = input_->count();
    return below ? std::optional(std::min(*below, count_)) : std::nullopt;
  }
  bool direct() const override { return input_->direct(); }
  bool steady() const override { return input_->steady(); }
  std::unique_ptr<Pass> pass(std::uint64_t number) const override {
    return std::make_unique<TakePass>(input_->pass(number), count_);
  }

 private:
  StagePtr input_;
  std::uint64_t count_;
};

class SkipPass final : public Pass {
 public:
  SkipPass(std::unique_ptr<Pass> input, std::uint64_t ahead)
      : input_(std::move(input)), ahead_(ahead) {}
  Expected<std::optional<Example>> next() override {
    TROUPE_TRY(begin());
    return input_->next();
  }
  Expected<std::uint64_t> skip(std::uint64_t n) override {
    TROUPE_TRY(begin());
    return input_->skip(n);
  }
  bool goes_on() const override { return input_->goes_on(); }
  std::unique_ptr<Pass> clone() const override {
    return std::make_unique<SkipPass>(input_->clone(), ahead_);
  }
  std::size_t bytes_held() const override { return sizeof *this + input_->bytes_held(); }

 private:
  Status begin() {
    const std::uint64_t ahead = std::exchange(ahead_, 0);
    return ahead == 0 ? ok_status() : input_->skip(ahead).status();
  }
  std::unique_ptr<Pass> input_;
  std::uint64_t ahead_;  // not yet skipped
};

class SkipStage final : public Stage {
 public:
  SkipStage(StagePtr input, std::uint64_t count)
      : Stage(input->signature()), input_(std::move(input)), count_(count) {}
  std::optional<std::uint64_t> count() const override {
    const auto below = input_->count();
    if (!below || *below == kEndless) return below;
    return *below - std::min(*below, count_);
  }
  bool direct() const override { return input_->direct(); }
  bool steady() const override { return input_->steady(); }
  std::unique_ptr<Pass> pass(std::uint64_t number) const override {
    return std::make_unique<SkipPass>(input_->pass(number), count_);
  }

 private:
  StagePtr input_;
  std::uint64_t count_;
};

Expected<Signature> signature_of_take(const StageText& stage,
                                      const std::vector<Signature>& inputs) {
  TROUPE_TRY(stage.takes(1, 1));
  TROUPE_TRY(stage.number(0, 0));
  return inputs[0];
}

template <class S>
Expected<StagePtr> open_take(const StageText& stage, Signature, Stages inputs, StageOpening&) {
  TROUPE_TRY(const std::int64_t count, stage.number(0, 0));
  return StagePtr(std::make_unique<S>(std::move(inputs[0]), std::uint64_t(count)));
}

}  // namespace

StageKind take_stage() { return {"take", 1, signature_of_take, open_take<TakeStage>}; }
StageKind skip_stage() { return {"skip", 1, signature_of_take, open_take<SkipStage>}; }

}  // namespace troupe
