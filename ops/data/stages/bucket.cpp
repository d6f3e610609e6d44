// `bucket COMPONENT keep|drop N BOUNDARY... M SIZE... SHAPE VALUE...`: padded batches of examples
// of similar length. N ascending boundaries divide the lengths into M = N + 1 buckets, each with
// its batch size.
#include <algorithm>

#include "ops/data/stack.hpp"
#include "ops/data/stage_kind.hpp"
#include "ops/data/stages/batches.hpp"

namespace troupe {

namespace {

struct BucketSpec {
  std::size_t component = 0;  // whose dimension 0 is the length
  bool drop = false;          // buckets that are not full at the end of a pass
  std::vector<std::int64_t> boundaries;
  std::vector<std::uint64_t> sizes;
  std::vector<Padding> padding;
};

// The first full bucket is the next batch. At the end the others follow, shortest lengths first.
class BucketPass final : public Pass {
 public:
  BucketPass(std::unique_ptr<Pass> input, const BucketSpec& spec)
      : input_(std::move(input)), spec_(spec), buckets_(spec.sizes.size()) {}
  BucketPass(const BucketPass& other)
      : input_(other.input_->clone()),
        spec_(other.spec_),
        buckets_(other.buckets_),
        last_(other.last_) {}

  Expected<std::optional<Example>> next() override {
    TROUPE_TRY(const std::vector<Example> examples, full_bucket());
    if (examples.empty()) return std::optional<Example>();
    TROUPE_TRY(std::vector<Tensor> batch, stack_padded(examples, spec_.padding));
    return std::optional(Example{nullptr, 0, std::move(batch)});
  }
  Expected<std::uint64_t> skip(std::uint64_t n) override {
    for (std::uint64_t i = 0; i < n; ++i) {
      const auto examples = full_bucket();
      if (examples.ok() && examples->empty()) return i;
      if (!examples.ok() && !(input_->goes_on() && is_of_data(examples.status())))
        return examples.status();
    }
    return n;
  }
  std::unique_ptr<Pass> clone() const override { return std::make_unique<BucketPass>(*this); }
  std::size_t bytes_held() const override {
    std::size_t bytes = sizeof *this + input_->bytes_held();
    for (const auto& bucket : buckets_)
      for (const Example& example : bucket) bytes += bytes_of(example);
    return bytes;
  }

 private:
  Expected<std::int64_t> length_of(const Example& example) const {
    const std::size_t c = spec_.component;
    if (example.source != nullptr) return example.source->signature()[c].shape.dim(0);
    if (example.values[c].rank() == 0)
      return invalid_argument("an example without dimensions has no length");
    return example.values[c].dim(0);
  }

  // None: the end.
  Expected<std::vector<Example>> full_bucket() {
    while (last_ == 0) {
      TROUPE_TRY(auto example, input_->next());
      if (!example) {
        last_ = 1;
        break;
      }
      TROUPE_TRY(const std::int64_t length, length_of(*example));
      const auto& ends = spec_.boundaries;
      const auto b = std::size_t(std::upper_bound(ends.begin(), ends.end(), length) - ends.begin());
      buckets_[b].push_back(std::move(*example));
      if (buckets_[b].size() == spec_.sizes[b]) return std::exchange(buckets_[b], {});
    }
    for (; !spec_.drop && last_ <= buckets_.size(); ++last_)
      if (!buckets_[last_ - 1].empty()) return std::exchange(buckets_[last_ - 1], {});
    return std::vector<Example>();
  }

  std::unique_ptr<Pass> input_;
  const BucketSpec& spec_;  // the stage's
  std::vector<std::vector<Example>> buckets_;
  std::size_t last_ = 0;  // after the end of the input: buckets before this one are done
};

class BucketStage final : public Stage {
 public:
  BucketStage(Signature signature, StagePtr input, BucketSpec spec)
      : Stage(std::move(signature)), input_(std::move(input)), spec_(std::move(spec)) {}
  // It depends on the lengths; the number of partial batches at the end depends on the order, too.
  std::optional<std::uint64_t> count() const override { return std::nullopt; }
  bool direct() const override { return false; }
  bool steady() const override { return false; }
  std::unique_ptr<Pass> pass(std::uint64_t number) const override {
    return std::make_unique<BucketPass>(input_->pass(number), spec_);
  }

 private:
  StagePtr input_;
  BucketSpec spec_;
};

Expected<BucketSpec> bucket_spec(const StageText& stage, const Signature& input) {
  BucketSpec spec;
  TROUPE_TRY(const std::int64_t component, stage.number(0, 0));
  spec.component = std::size_t(component);
  if (spec.component >= input.size() || !input[spec.component].shape.known_rank() ||
      input[spec.component].shape.rank() == 0)
    return invalid_argument("component " + std::to_string(component) + " of " +
                            signature_text(input) + " has no length");
  TROUPE_TRY(spec.drop, parse_remainder(stage, 1));
  TROUPE_TRY(const std::int64_t n, stage.number(2, 0));
  if (std::uint64_t(n) > stage.arguments.size())
    return invalid_argument("stage '" + stage.text() + "' has fewer boundaries than it says");
  std::size_t i = 3;
  for (std::int64_t b = 0; b < n; ++b) {
    const std::int64_t least = spec.boundaries.empty() ? 1 : spec.boundaries.back() + 1;
    TROUPE_TRY(const std::int64_t boundary, stage.number(i++, least));
    spec.boundaries.push_back(boundary);
  }
  TROUPE_TRY(const std::int64_t sizes, stage.number(i++, 0));
  if (sizes != n + 1)
    return invalid_argument(std::to_string(n) + " boundaries part lengths in " +
                            std::to_string(n + 1) + " buckets, and there are sizes for " +
                            std::to_string(sizes));
  for (std::int64_t b = 0; b < sizes; ++b) {
    TROUPE_TRY(const std::int64_t size, stage.number(i++, 1));
    TROUPE_TRY(check_batch_size(size));
    spec.sizes.push_back(std::uint64_t(size));
  }
  TROUPE_TRY(spec.padding, parse_padding(stage, i, input));
  return spec;
}

Expected<Signature> signature_of_bucket(const StageText& stage,
                                        const std::vector<Signature>& inputs) {
  TROUPE_TRY(const BucketSpec spec, bucket_spec(stage, inputs[0]));
  return batched(padded(inputs[0], spec.padding), PartialShape::kUnknown);
}

Expected<StagePtr> open_bucket(const StageText& stage, Signature signature, Stages inputs,
                               StageOpening&) {
  TROUPE_TRY(BucketSpec spec, bucket_spec(stage, inputs[0]->signature()));
  return StagePtr(
      std::make_unique<BucketStage>(std::move(signature), std::move(inputs[0]), std::move(spec)));
}

}  // namespace

StageKind bucket_stage() { return {"bucket", 1, signature_of_bucket, open_bucket}; }

}  // namespace troupe
