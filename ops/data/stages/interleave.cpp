// `interleave N`: one example of each of N inputs in turn. Inputs that have ended are skipped.
// `interleave N CYCLE BLOCK`: CYCLE of them in turn (0: all), BLOCK examples of each; the next
// input replaces one that has ended.
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
      auto example = turns_[at_].pass->next();
      goes_on_ = turns_[at_].pass->goes_on();
      if (example.ok() && !*example) {
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
    goes_on_ = false;
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

  bool goes_on() const override { return goes_on_; }
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
  // Skips whole rounds for which all inputs are known to last, at most `most` examples.
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
  bool goes_on_ = false;
};

struct Cycle {
  std::size_t at_once = 1;
  std::uint64_t block = 1;
};

// An input is opened when its turn comes.
class CyclePass final : public Pass {
 public:
  CyclePass(const Stages& inputs, const Cycle& cycle, std::uint64_t number)
      : inputs_(inputs), cycle_(cycle), number_(number) {
    places_.resize(std::min(cycle.at_once, inputs.size()));
  }
  CyclePass(const CyclePass& other)
      : inputs_(other.inputs_),
        cycle_(other.cycle_),
        number_(other.number_),
        at_(other.at_),
        begun_(other.begun_),
        taken_(other.taken_),
        goes_on_(other.goes_on_) {
    for (const auto& place : other.places_) places_.push_back(place ? place->clone() : nullptr);
  }

  Expected<std::optional<Example>> next() override {
    while (begin()) {
      auto example = places_[at_]->next();
      goes_on_ = places_[at_]->goes_on();
      if (example.ok() && !*example) {
        end_of_input();
        continue;
      }
      took(1);
      return example;
    }
    return std::optional<Example>();
  }
  Expected<std::uint64_t> skip(std::uint64_t n) override {
    std::uint64_t passed = 0;
    while (passed < n && begin()) {
      // With one place there are no turns.
      const std::uint64_t turn = places_.size() == 1 ? n : cycle_.block - taken_;
      const std::uint64_t wanted = std::min(n - passed, turn);
      const auto here = places_[at_]->skip(wanted);
      goes_on_ = places_[at_]->goes_on();
      if (!here.ok()) return here.status();
      passed += *here;
      if (*here < wanted)
        end_of_input();
      else
        took(wanted);
    }
    return passed;
  }
  bool goes_on() const override { return goes_on_; }
  std::unique_ptr<Pass> clone() const override { return std::make_unique<CyclePass>(*this); }
  std::size_t bytes_held() const override {
    std::size_t bytes = sizeof *this;
    for (const auto& place : places_) bytes += place ? place->bytes_held() : 0;
    return bytes;
  }

 private:
  // Finds the input whose turn it is; false if there is none. Removes places without an input.
  bool begin() {
    while (!places_.empty()) {
      if (places_[at_]) return true;
      if (begun_ < inputs_.size()) {
        places_[at_] = inputs_[begun_++]->pass(number_);
        return true;
      }
      places_.erase(places_.begin() + std::ptrdiff_t(at_));
      if (at_ == places_.size()) at_ = 0;
    }
    return false;
  }
  void end_of_input() {
    places_[at_].reset();
    taken_ = 0;
  }
  void took(std::uint64_t n) {
    taken_ += n;
    if (places_.size() > 1 && taken_ < cycle_.block) return;
    taken_ = 0;
    at_ = (at_ + 1) % places_.size();
  }

  const Stages& inputs_;  // the stage's
  Cycle cycle_;
  std::uint64_t number_;
  std::vector<std::unique_ptr<Pass>> places_;
  std::size_t at_ = 0, begun_ = 0;
  std::uint64_t taken_ = 0;  // in this turn
  bool goes_on_ = false;
};

class InterleaveStage final : public Stage {
 public:
  // No cycle: all inputs in turn, an example of each.
  InterleaveStage(Signature signature, Stages inputs, std::optional<Cycle> cycle)
      : Stage(std::move(signature)), inputs_(std::move(inputs)), cycle_(cycle) {}
  std::optional<std::uint64_t> count() const override {
    std::uint64_t sum = 0;
    for (const StagePtr& input : inputs_) {
      const auto below = input->count();
      if (!below) return std::nullopt;
      sum = *below > kEndless - sum ? kEndless : sum + *below;
    }
    return sum;
  }
  bool direct() const override {
    return all(&Stage::direct) && count().has_value() && (!cycle_ || cycle_->at_once == 1);
  }
  bool steady() const override { return all(&Stage::steady); }
  std::unique_ptr<Pass> pass(std::uint64_t number) const override {
    if (cycle_) return std::make_unique<CyclePass>(inputs_, *cycle_, number);
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
  std::optional<Cycle> cycle_;
};

Expected<std::optional<Cycle>> cycle_of(const StageText& stage) {
  TROUPE_TRY(stage.takes(1, 3));
  if (stage.arguments.size() == 1) return std::optional<Cycle>();
  TROUPE_TRY(const std::int64_t inputs, stage.number(0, 1));
  TROUPE_TRY(const std::int64_t at_once, stage.number(1, 0));
  TROUPE_TRY(const std::int64_t block, stage.number(2, 1));
  return std::optional(Cycle{std::size_t(at_once == 0 ? inputs : at_once), std::uint64_t(block)});
}

// The signature that all inputs fit.
Expected<Signature> signature_of_interleave(const StageText& stage,
                                            const std::vector<Signature>& inputs) {
  TROUPE_TRY(cycle_of(stage));
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

Expected<StagePtr> open_interleave(const StageText& stage, Signature signature, Stages inputs,
                                   StageOpening&) {
  TROUPE_TRY(const auto cycle, cycle_of(stage));
  return StagePtr(
      std::make_unique<InterleaveStage>(std::move(signature), std::move(inputs), cycle));
}

}  // namespace

StageKind interleave_stage() {
  return {"interleave", StageKind::kSomeInputs, signature_of_interleave, open_interleave};
}

}  // namespace troupe
