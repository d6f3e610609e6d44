// `zip N`: combines one example of each of N inputs; ends with the shortest of them.
#include <algorithm>

#include "ops/data/stack.hpp"
#include "ops/data/stage_kind.hpp"

namespace troupe {

namespace {

constexpr std::size_t kMostComponents = 1024;

class ZipPass final : public Pass {
 public:
  explicit ZipPass(std::vector<std::unique_ptr<Pass>> inputs) : inputs_(std::move(inputs)) {}

  // All inputs advance, even if one of them fails, so that they stay aligned.
  Expected<std::optional<Example>> next() override {
    if (ended_) return std::optional<Example>();
    Example all;
    Status failed;
    goes_on_ = true;
    for (auto& input : inputs_) {
      auto example = input->next();
      if (!example.ok()) {
        goes_on_ = goes_on_ && input->goes_on();
        if (failed.ok()) failed = example.status();
        continue;
      }
      if (!*example) {
        ended_ = true;
        return std::optional<Example>();
      }
      auto values = values_of(**example);
      if (!values.ok()) {
        if (failed.ok()) failed = in_example(values.status(), **example);
        continue;
      }
      if (!all.origin.known()) all.origin = origin_of(**example);
      all.values.insert(all.values.end(), std::make_move_iterator(values->begin()),
                        std::make_move_iterator(values->end()));
    }
    if (!failed.ok()) return failed;
    return std::optional(std::move(all));
  }
  Expected<std::uint64_t> skip(std::uint64_t n) override {
    if (ended_) return std::uint64_t{0};
    std::uint64_t least = n;
    goes_on_ = false;
    for (auto& input : inputs_) {
      TROUPE_TRY(const std::uint64_t passed, input->skip(n));
      least = std::min(least, passed);
    }
    ended_ = least < n;
    return least;
  }
  bool goes_on() const override { return goes_on_; }
  std::unique_ptr<Pass> clone() const override {
    std::vector<std::unique_ptr<Pass>> inputs;
    for (const auto& input : inputs_) inputs.push_back(input->clone());
    auto copy = std::make_unique<ZipPass>(std::move(inputs));
    copy->ended_ = ended_;
    return copy;
  }
  std::size_t bytes_held() const override {
    std::size_t bytes = sizeof *this;
    for (const auto& input : inputs_) bytes += input->bytes_held();
    return bytes;
  }

 private:
  std::vector<std::unique_ptr<Pass>> inputs_;
  bool ended_ = false, goes_on_ = false;
};

class ZipStage final : public Stage {
 public:
  ZipStage(Signature signature, Stages inputs)
      : Stage(std::move(signature)), inputs_(std::move(inputs)) {}
  std::optional<std::uint64_t> count() const override {
    std::uint64_t least = kEndless;
    for (const StagePtr& input : inputs_) {
      const auto below = input->count();
      if (!below) return std::nullopt;
      least = std::min(least, *below);
    }
    return least;
  }
  bool direct() const override { return all(&Stage::direct) && count().has_value(); }
  bool steady() const override { return all(&Stage::steady); }
  std::unique_ptr<Pass> pass(std::uint64_t number) const override {
    std::vector<std::unique_ptr<Pass>> inputs;
    for (const StagePtr& input : inputs_) inputs.push_back(input->pass(number));
    return std::make_unique<ZipPass>(std::move(inputs));
  }

 private:
  bool all(bool (Stage::*is)() const) const {
    return std::all_of(inputs_.begin(), inputs_.end(),
                       [&](const StagePtr& input) { return (*input.*is)(); });
  }
  Stages inputs_;
};

Expected<Signature> signature_of_zip(const StageText& stage, const std::vector<Signature>& inputs) {
  TROUPE_TRY(stage.takes(1, 1));
  Signature all;
  for (const Signature& input : inputs) all.insert(all.end(), input.begin(), input.end());
  if (all.size() <= kMostComponents) return all;
  return invalid_argument("zip: " + std::to_string(all.size()) + " components; at most " +
                          std::to_string(kMostComponents) + " are possible");
}

Expected<StagePtr> open_zip(const StageText&, Signature signature, Stages inputs, StageOpening&) {
  // An open input may have more exact shapes.
  signature.clear();
  for (const StagePtr& input : inputs)
    signature.insert(signature.end(), input->signature().begin(), input->signature().end());
  return StagePtr(std::make_unique<ZipStage>(std::move(signature), std::move(inputs)));
}

}  // namespace

StageKind zip_stage() { return {"zip", StageKind::kSomeInputs, signature_of_zip, open_zip}; }

}  // namespace troupe
