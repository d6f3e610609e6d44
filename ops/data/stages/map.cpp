// `map DTYPE SHAPE...`: what a function of the graph makes of each example. The words are what it
// returns.
#include "core/hash.hpp"
#include "ops/data/example_function.hpp"
#include "ops/data/stack.hpp"
#include "ops/data/stage_kind.hpp"

namespace troupe {

namespace {

// What the function draws belongs to the example's place in its pass, so that whoever comes there,
// on whatever way, sees the same.
class MapPass final : public Pass {
 public:
  // `draws`: of the pass.
  MapPass(std::unique_ptr<Pass> input, ExampleFunctionPtr function, std::uint64_t draws)
      : input_(std::move(input)), function_(std::move(function)), draws_(draws) {}
  MapPass(const MapPass& other)
      : input_(other.input_->clone()),
        function_(other.function_),
        draws_(other.draws_),
        place_(other.place_) {}

  Expected<std::optional<Example>> next() override {
    TROUPE_TRY(const auto example, input_->next());
    if (!example) return std::optional<Example>();
    TROUPE_TRY(std::vector<Tensor> values, values_of(*example));
    if (!fits(function_->arguments(), values)) return refused(values);
    TROUPE_TRY(values, function_->call(std::move(values), hash_combine(draws_, place_++)));
    return std::optional(Example{nullptr, 0, std::move(values)});
  }
  // What is passed over is not computed.
  Expected<std::uint64_t> skip(std::uint64_t n) override {
    TROUPE_TRY(const std::uint64_t passed, input_->skip(n));
    place_ += passed;
    return passed;
  }
  std::unique_ptr<Pass> clone() const override { return std::make_unique<MapPass>(*this); }
  std::size_t bytes_held() const override { return sizeof *this + input_->bytes_held(); }

 private:
  Status refused(const std::vector<Tensor>& values) const {
    return invalid_argument("an example is " + signature_text(signature_of(values)) +
                            ", and the function takes " + signature_text(function_->arguments()));
  }

  std::unique_ptr<Pass> input_;
  ExampleFunctionPtr function_;
  std::uint64_t draws_, place_ = 0;
};

class MapStage final : public Stage {
 public:
  MapStage(StagePtr input, StageOpening::Function function, Signature results)
      : Stage(std::move(results)), input_(std::move(input)), function_(std::move(function)) {}
  std::optional<std::uint64_t> count() const override { return input_->count(); }
  bool direct() const override { return input_->direct(); }
  bool steady() const override { return input_->steady(); }
  std::unique_ptr<Pass> pass(std::uint64_t number) const override {
    return std::make_unique<MapPass>(input_->pass(number), function_.call,
                                     hash_combine(function_.draws, number));
  }

 private:
  StagePtr input_;
  StageOpening::Function function_;
};

Expected<Signature> signature(const StageText& stage, const std::vector<Signature>&) {
  TROUPE_TRY(stage.takes(2, 128));
  Signature results;
  for (std::size_t i = 0; i < stage.arguments.size(); i += 2) {
    TROUPE_TRY(const DType dtype, stage.dtype(i));
    TROUPE_TRY(PartialShape shape, stage.shape(i + 1));
    results.push_back({dtype, std::move(shape)});
  }
  return results;
}

// The words are what the graph was built on.
Expected<StagePtr> open(const StageText&, Signature results, Stages inputs, StageOpening& opening) {
  TROUPE_TRY(StageOpening::Function function, opening.next_function());
  const Signature &takes = function.call->arguments(), &returns = function.call->results();
  const Signature& given = inputs[0]->signature();
  if (returns != results)
    return invalid_argument("the function of a map returns " + signature_text(returns) + ", not " +
                            signature_text(results));
  if (!may_fit(takes, given))
    return invalid_argument("the function of a map takes " + signature_text(takes) +
                            ", and examples are " + signature_text(given));
  return StagePtr(
      std::make_unique<MapStage>(std::move(inputs[0]), std::move(function), std::move(results)));
}

}  // namespace

StageKind map_stage() { return {"map", 1, signature, open}; }

}  // namespace troupe
