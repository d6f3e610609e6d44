// `interleave N`: an example of each of N inputs in turn. One that has ended loses its turn.
#include <algorithm>

#include "ops/data/stage_kind.hpp"

namespace troupe {

namespace {

struct Turn {
  std::unique_ptr<Pass> pass;
  std::optional<std::uint64_t> left;  // examples, if that is known
};

class InterleavePass final : public Pass {
 public:
  InterleavePass(std::vector<Turn> turns, std::size_t at) : turns_(std::move(turns)), at_(at) {}

  Expected<std::optional<Example>> next() override {
    while (!turns_.empty()) {
      TROUPE_TRY(auto example, turns_[at_].pass->next());
      if (!example) {
        drop();
        continue;
      }
      took(1);
      at_ = (at_ + 1) % turns_.size();
      return example;
    }
    return std::optional<Example>();
  }

  Expected<std::uint64_t> skip(std::uint64_t n) override {
    std::uint64_t passed = 0;
    while (passed < n && !turns_.empty()) {
      TROUPE_TRY(const std::uint64_t rounds, skip_rounds(n - passed));
      passed += rounds * turns_.size();
      if (passed == n) break;
      TROUPE_TRY(const std::uint64_t one, turns_[at_].pass->skip(1));
      if (one == 0) {
        drop();
        continue;
      }
      took(1);
      at_ = (at_ + 1) % turns_.size();
      ++passed;
    }
    return passed;
  }

  std::unique_ptr<Pass> clone() const override {
    std::vector<Turn> turns;
    for (const Turn& turn : turns_) turns.push_back({turn.pass->clone(), turn.left});
    return std::make_unique<InterleavePass>(std::move(turns), at_);
  }
  std::size_t bytes_held() const override {
    std::size_t bytes = sizeof *this;
    for (const Turn& turn : turns_) bytes += turn.pass->bytes_held();
    return bytes;
  }

 private:
  void drop() {
    turns_.erase(turns_.begin() + std::ptrdiff_t(at_));
    if (at_ == turns_.size()) at_ = 0;
  }
  void took(std::uint64_t n) {
    auto& left = turns_[at_].left;
    if (left && *left != kEndless) *left -= n;
  }
  // Whole rounds that all inputs are known to last, for `most` examples at most.
  Expected<std::uint64_t> skip_rounds(std::uint64_t most) {
    std::uint64_t rounds = most / turns_.size();
    for (const Turn& turn : turns_) rounds = std::min(rounds, turn.left.value_or(0));
    if (rounds == 0) return rounds;
    for (std::size_t i = 0; i < turns_.size(); ++i, at_ = (at_ + 1) % turns_.size()) {
      TROUPE_TRY(turns_[at_].pass->skip(rounds));
      took(rounds);
    }
    return rounds;
  }

  std::vector<Turn> turns_;
  std::size_t at_;
};

class InterleaveStage final : public Stage {
 public:
  InterleaveStage(Signature signature, Stages inputs)
      : Stage(std::move(signature)), inputs_(std::move(inputs)) {}
  std::optional<std::uint64_t> count() const override {
    std::uint64_t sum = 0;
    for (const StagePtr& input : inputs_) {
      const auto below = input->count();
      if (!below) return std::nullopt;
      sum = *below > kEndless - sum ? kEndless : sum + *below;
    }
    return sum;
  }
  bool direct() const override { return all(&Stage::direct) && count().has_value(); }
  bool steady() const override { return all(&Stage::steady); }
  std::unique_ptr<Pass> pass(std::uint64_t number) const override {
    std::vector<Turn> turns;
    for (const StagePtr& input : inputs_) turns.push_back({input->pass(number), input->count()});
    return std::make_unique<InterleavePass>(std::move(turns), 0);
  }

 private:
  bool all(bool (Stage::*is)() const) const {
    return std::all_of(inputs_.begin(), inputs_.end(),
                       [&](const StagePtr& input) { return (*input.*is)(); });
  }
  Stages inputs_;
};

// What all inputs have in common.
Expected<Signature> signature(const StageText& stage, const std::vector<Signature>& inputs) {
  TROUPE_TRY(stage.takes(1, 1));
  Signature common = inputs[0];
  for (const Signature& other : inputs) {
    bool alike = other.size() == common.size();
    for (std::size_t c = 0; alike && c < other.size(); ++c) {
      alike = other[c].dtype == common[c].dtype;
      PartialShape& shape = common[c].shape;
      if (!shape.known_rank() || !other[c].shape.known_rank() ||
          shape.rank() != other[c].shape.rank())
        shape = shape == other[c].shape ? shape : PartialShape::unknown();
      else
        for (int d = 0; d < shape.rank(); ++d)
          if (shape.dim(d) != other[c].shape.dim(d)) shape.set_dim(d, PartialShape::kUnknown);
    }
    if (!alike)
      return invalid_argument("interleaved sources differ: " + signature_text(inputs[0]) + " and " +
                              signature_text(other));
  }
  return common;
}

Expected<StagePtr> open(const StageText&, Signature signature, Stages inputs, StageOpening&) {
  return StagePtr(std::make_unique<InterleaveStage>(std::move(signature), std::move(inputs)));
}

}  // namespace

StageKind interleave_stage() { return {"interleave", StageKind::kSomeInputs, signature, open}; }

}  // namespace troupe
