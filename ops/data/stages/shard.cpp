// `shard N I`: every Nth example, beginning with example I.
#include <algorithm>

#include "ops/data/stage_kind.hpp"

namespace troupe {

namespace {

class ShardPass final : public Pass {
 public:
  ShardPass(std::unique_ptr<Pass> input, std::uint64_t shards, std::uint64_t ahead)
      : input_(std::move(input)), shards_(shards), ahead_(ahead) {}
  Expected<std::optional<Example>> next() override {
    TROUPE_TRY(input_->skip(std::exchange(ahead_, shards_ - 1)));
    return input_->next();
  }
  Expected<std::uint64_t> skip(std::uint64_t n) override {
    if (n == 0) return n;
    // Those of other shards before each of ours, and ours; no further than the end.
    n = std::min(n, (kEndless - ahead_) / shards_);
    const std::uint64_t before = ahead_, span = before + 1 + (n - 1) * shards_;
    TROUPE_TRY(const std::uint64_t passed, input_->skip(span));
    ahead_ = shards_ - 1;
    return passed <= before ? 0 : (passed - before - 1) / shards_ + 1;
  }
  bool goes_on() const override { return input_->goes_on(); }
  std::unique_ptr<Pass> clone() const override {
    return std::make_unique<ShardPass>(input_->clone(), shards_, ahead_);
  }
  std::size_t bytes_held() const override { return sizeof *this + input_->bytes_held(); }

 private:
  std::unique_ptr<Pass> input_;
  std::uint64_t shards_, ahead_;  // of other shards, before the next of ours
};

class ShardStage final : public Stage {
 public:
  ShardStage(StagePtr input, std::uint64_t shards, std::uint64_t index)
      : Stage(input->signature()), input_(std::move(input)), shards_(shards), index_(index) {}
  std::optional<std::uint64_t> count() const override {
    const auto below = input_->count();
    if (!below || *below == kEndless) return below;
    return *below <= index_ ? 0 : (*below - index_ - 1) / shards_ + 1;
  }
  bool direct() const override { return input_->direct(); }
  bool steady() const override { return input_->steady(); }
  std::unique_ptr<Pass> pass(std::uint64_t number) const override {
    return std::make_unique<ShardPass>(input_->pass(number), shards_, index_);
  }

 private:
  StagePtr input_;
  std::uint64_t shards_, index_;
};

Expected<Signature> signature_of_shard(const StageText& stage,
                                       const std::vector<Signature>& inputs) {
  TROUPE_TRY(stage.takes(2, 2));
  TROUPE_TRY(const std::int64_t shards, stage.number(0, 1));
  TROUPE_TRY(const std::int64_t index, stage.number(1, 0));
  if (index >= shards)
    return invalid_argument("shard " + std::to_string(index) + " of " + std::to_string(shards) +
                            ": shards are counted from 0");
  return inputs[0];
}

Expected<StagePtr> open_shard(const StageText& stage, Signature, Stages inputs, StageOpening&) {
  TROUPE_TRY(const std::int64_t shards, stage.number(0, 1));
  TROUPE_TRY(const std::int64_t index, stage.number(1, 0));
  return StagePtr(std::make_unique<ShardStage>(std::move(inputs[0]), std::uint64_t(shards),
                                               std::uint64_t(index)));
}

}  // namespace

StageKind shard_stage() { return {"shard", 1, signature_of_shard, open_shard}; }

}  // namespace troupe
