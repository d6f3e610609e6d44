// `batch SIZE keep|drop` and `padded_batch SIZE keep|drop SHAPE VALUE...`: batches of examples.
// The last batch of a pass may be short; `drop` omits it then.
#include <algorithm>

#include "ops/data/stack.hpp"
#include "ops/data/stage_kind.hpp"
#include "ops/data/stages/batches.hpp"

namespace troupe {

namespace {

struct BatchSpec {
  std::uint64_t size = 1;
  bool drop = false;
  std::vector<Padding> padding;  // empty: none
};

class BatchPass final : public Pass {
 public:
  BatchPass(std::unique_ptr<Pass> input, const BatchSpec& spec)
      : input_(std::move(input)), spec_(spec) {}
  Expected<std::optional<Example>> next() override {
    std::vector<Example> examples;
    while (examples.size() < spec_.size) {
      TROUPE_TRY(auto example, input_->next());
      if (!example) break;
      examples.push_back(std::move(*example));
    }
    if (examples.empty() || (spec_.drop && examples.size() < spec_.size))
      return std::optional<Example>();
    TROUPE_TRY(std::vector<Tensor> batch,
               spec_.padding.empty() ? stack(examples) : stack_padded(examples, spec_.padding));
    return std::optional(Example{nullptr, 0, std::move(batch)});
  }
  Expected<std::uint64_t> skip(std::uint64_t n) override {
    n = std::min(n, kEndless / spec_.size);
    TROUPE_TRY(const std::uint64_t passed, input_->skip(n * spec_.size));
    return passed / spec_.size + (passed % spec_.size != 0 && !spec_.drop ? 1 : 0);
  }
  std::unique_ptr<Pass> clone() const override {
    return std::make_unique<BatchPass>(input_->clone(), spec_);
  }
  std::size_t bytes_held() const override { return sizeof *this + input_->bytes_held(); }

 private:
  std::unique_ptr<Pass> input_;
  const BatchSpec& spec_;  // the stage's
};

class BatchStage final : public Stage {
 public:
  BatchStage(Signature signature, StagePtr input, BatchSpec spec)
      : Stage(std::move(signature)), input_(std::move(input)), spec_(std::move(spec)) {}
  std::optional<std::uint64_t> count() const override {
    const auto below = input_->count();
    if (!below || *below == kEndless) return below;
    return *below / spec_.size + (*below % spec_.size != 0 && !spec_.drop ? 1 : 0);
  }
  bool direct() const override { return input_->direct(); }
  bool steady() const override { return input_->steady(); }
  std::unique_ptr<Pass> pass(std::uint64_t number) const override {
    return std::make_unique<BatchPass>(input_->pass(number), spec_);
  }

 private:
  StagePtr input_;
  BatchSpec spec_;
};

Expected<BatchSpec> batch_spec(const StageText& stage) {
  BatchSpec spec;
  TROUPE_TRY(const std::int64_t size, stage.number(0, 1));
  TROUPE_TRY(check_batch_size(size));
  spec.size = std::uint64_t(size);
  TROUPE_TRY(spec.drop, parse_remainder(stage, 1));
  return spec;
}

Expected<BatchSpec> padded_spec(const StageText& stage, const Signature& input) {
  TROUPE_TRY(BatchSpec spec, batch_spec(stage));
  TROUPE_TRY(spec.padding, parse_padding(stage, 2, input));
  return spec;
}

std::int64_t rows(const BatchSpec& spec) {
  return spec.drop ? std::int64_t(spec.size) : PartialShape::kUnknown;
}

Expected<Signature> plain_signature(const StageText& stage, const std::vector<Signature>& inputs) {
  TROUPE_TRY(stage.takes(2, 2));
  TROUPE_TRY(const BatchSpec spec, batch_spec(stage));
  return batched(inputs[0], rows(spec));
}

Expected<Signature> padded_signature(const StageText& stage, const std::vector<Signature>& inputs) {
  TROUPE_TRY(const BatchSpec spec, padded_spec(stage, inputs[0]));
  return batched(padded(inputs[0], spec.padding), rows(spec));
}

Expected<StagePtr> make(Signature signature, StagePtr input, BatchSpec spec) {
  const auto examples = input->count();
  if (spec.drop && examples && *examples != 0 && *examples < spec.size)
    return invalid_argument("a batch of " + std::to_string(spec.size) + " is never full with " +
                            std::to_string(*examples) + " examples an epoch");
  return StagePtr(
      std::make_unique<BatchStage>(std::move(signature), std::move(input), std::move(spec)));
}

Expected<StagePtr> open_plain(const StageText& stage, Signature signature, Stages inputs,
                              StageOpening&) {
  TROUPE_TRY(BatchSpec spec, batch_spec(stage));
  return make(std::move(signature), std::move(inputs[0]), std::move(spec));
}

Expected<StagePtr> open_padded(const StageText& stage, Signature signature, Stages inputs,
                               StageOpening&) {
  TROUPE_TRY(BatchSpec spec, padded_spec(stage, inputs[0]->signature()));
  return make(std::move(signature), std::move(inputs[0]), std::move(spec));
}

}  // namespace

StageKind batch_stage() { return {"batch", 1, plain_signature, open_plain}; }
StageKind padded_batch_stage() { return {"padded_batch", 1, padded_signature, open_padded}; }

}  // namespace troupe
