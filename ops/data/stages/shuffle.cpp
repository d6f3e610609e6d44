// `shuffle WINDOW SEED`: each pass in another random order, drawn from a window of examples.
#include <algorithm>

#include "core/hash.hpp"
#include "ops/data/stage_kind.hpp"

namespace troupe {

namespace {

constexpr std::uint64_t kMostInWindow = std::uint64_t{1} << 28;

// Keeps the next examples and draws one of them; the first of them takes its place. So no example
// comes more than a window early, and the order is a uniform permutation if the window has a whole
// pass. The generator counts its draws, so a copy continues like the original.
class ShufflePass final : public Pass {
 public:
  ShufflePass(std::unique_ptr<Pass> input, std::uint64_t window, std::uint64_t seed)
      : input_(std::move(input)), window_(window), random_(seed) {}
  ShufflePass(const ShufflePass& other)
      : input_(other.input_->clone()),
        window_(other.window_),
        random_(other.random_),
        ring_(other.ring_),
        head_(other.head_),
        live_(other.live_),
        ended_(other.ended_) {}

  Expected<std::optional<Example>> next() override {
    TROUPE_TRY(fill());
    if (live_ == 0) return std::optional<Example>();
    std::swap(ring_[head_], ring_[(head_ + random_.below(live_)) % ring_.size()]);
    std::optional<Example> drawn(std::exchange(ring_[head_], {}));
    head_ = (head_ + 1) % ring_.size();
    --live_;
    return drawn;
  }
  bool goes_on() const override { return input_->goes_on(); }
  std::unique_ptr<Pass> clone() const override { return std::make_unique<ShufflePass>(*this); }
  std::size_t bytes_held() const override {
    std::size_t bytes = sizeof *this + input_->bytes_held();
    for (const Example& example : ring_) bytes += bytes_of(example);
    return bytes;
  }

 private:
  // The ring grows until it is full for the first time; then each slot that was drawn is free.
  Status fill() {
    while (!ended_ && live_ < window_) {
      TROUPE_TRY(auto example, input_->next());
      if (!example)
        ended_ = true;
      else if (ring_.size() < window_)
        ring_.push_back(std::move(*example)), ++live_;
      else
        ring_[(head_ + live_++) % ring_.size()] = std::move(*example);
    }
    return ok_status();
  }

  std::unique_ptr<Pass> input_;
  std::uint64_t window_;
  Random random_;
  std::vector<Example> ring_;
  std::size_t head_ = 0, live_ = 0;
  bool ended_ = false;
};

class ShuffleStage final : public Stage {
 public:
  ShuffleStage(StagePtr input, std::uint64_t window, std::uint64_t seed)
      : Stage(input->signature()), input_(std::move(input)), window_(window), seed_(seed) {}
  std::optional<std::uint64_t> count() const override { return input_->count(); }
  bool direct() const override { return window_ <= 1 && input_->direct(); }
  bool steady() const override { return input_->steady(); }
  std::unique_ptr<Pass> pass(std::uint64_t number) const override {
    if (window_ <= 1) return input_->pass(number);
    return std::make_unique<ShufflePass>(input_->pass(number), window_,
                                         hash_combine(mix64(seed_), number));
  }

 private:
  StagePtr input_;
  std::uint64_t window_, seed_;
};

Expected<Signature> signature_of_shuffle(const StageText& stage,
                                         const std::vector<Signature>& inputs) {
  TROUPE_TRY(stage.takes(2, 2));
  TROUPE_TRY(stage.number(0, 0));
  TROUPE_TRY(stage.seed(1));
  return inputs[0];
}

Expected<StagePtr> open_shuffle(const StageText& stage, Signature, Stages inputs, StageOpening&) {
  TROUPE_TRY(const std::int64_t window, stage.number(0, 0));
  TROUPE_TRY(const std::uint64_t seed, stage.seed(1));
  const std::uint64_t held = std::min(std::uint64_t(window), inputs[0]->count().value_or(kEndless));
  if (held > kMostInWindow)
    return resource_exhausted("a shuffle keeps at most " + std::to_string(kMostInWindow) +
                              " examples, not " + std::to_string(held));
  return StagePtr(
      std::make_unique<ShuffleStage>(std::move(inputs[0]), std::uint64_t(window), seed));
}

}  // namespace

StageKind shuffle_stage() { return {"shuffle", 1, signature_of_shuffle, open_shuffle}; }

}  // namespace troupe
