// `filter`: the examples for which a function of the graph returns true.
#include "core/hash.hpp"
#include "ops/data/stack.hpp"
#include "ops/data/stage_kind.hpp"

namespace troupe {

namespace {

// Passes examples on unchanged: a position in a source remains one. As in a map, random numbers
// depend on the example's place in the pass.
class FilterPass final : public Pass {
 public:
  FilterPass(std::unique_ptr<Pass> input, ExampleFunctionPtr function, std::uint64_t draws)
      : input_(std::move(input)), function_(std::move(function)), draws_(draws) {}
  FilterPass(const FilterPass& other)
      : input_(other.input_->clone()),
        function_(other.function_),
        draws_(other.draws_),
        place_(other.place_) {}

  Expected<std::optional<Example>> next() override {
    for (;;) {
      auto example = input_->next();
      goes_on_ = example.ok() || input_->goes_on();
      const std::uint64_t draw = hash_combine(draws_, place_++);
      if (!example.ok()) return example.status();
      if (!*example) return example;
      const auto stays = passes(**example, draw);
      if (!stays.ok()) return in_example(stays.status(), **example);
      if (*stays) return example;
    }
  }
  bool goes_on() const override { return goes_on_; }
  std::unique_ptr<Pass> clone() const override { return std::make_unique<FilterPass>(*this); }
  std::size_t bytes_held() const override { return sizeof *this + input_->bytes_held(); }

 private:
  Expected<bool> passes(const Example& example, std::uint64_t draw) {
    TROUPE_TRY(std::vector<Tensor> values, values_of(example));
    if (!fits(function_->arguments(), values))
      return invalid_argument("an example is " + signature_text(signature_of(values)) +
                              ", and the function takes " + signature_text(function_->arguments()));
    TROUPE_TRY(values, function_->call(std::move(values), draw));
    if (values[0].rank() != 0)
      return invalid_argument("the function of a filter returned bool" + values[0].shape().text() +
                              ", not bool[]");
    return *values[0].data<bool>();
  }

  std::unique_ptr<Pass> input_;
  ExampleFunctionPtr function_;
  std::uint64_t draws_, place_ = 0;
  bool goes_on_ = false;
};

class FilterStage final : public Stage {
 public:
  FilterStage(StagePtr input, StageOpening::Function function)
      : Stage(input->signature()), input_(std::move(input)), function_(std::move(function)) {}
  std::optional<std::uint64_t> count() const override { return std::nullopt; }
  bool direct() const override { return false; }
  bool steady() const override { return false; }  // the function may draw
  std::unique_ptr<Pass> pass(std::uint64_t number) const override {
    return std::make_unique<FilterPass>(input_->pass(number), function_.call,
                                        hash_combine(function_.draws, number));
  }

 private:
  StagePtr input_;
  StageOpening::Function function_;
};

Expected<Signature> signature_of_filter(const StageText& stage,
                                        const std::vector<Signature>& inputs) {
  TROUPE_TRY(stage.takes(0, 0));
  return inputs[0];
}

Expected<StagePtr> open_filter(const StageText&, Signature, Stages inputs, StageOpening& opening) {
  TROUPE_TRY(StageOpening::Function function, opening.next_function());
  const Signature &takes = function.call->arguments(), &returns = function.call->results();
  if (!may_fit(returns, {{DType::bool_, PartialShape::scalar()}}))
    return invalid_argument("the function of a filter returns " + signature_text(returns) +
                            ", not bool[]");
  if (!may_fit(takes, inputs[0]->signature()))
    return invalid_argument("the function of a filter takes " + signature_text(takes) +
                            ", and examples are " + signature_text(inputs[0]->signature()));
  return StagePtr(std::make_unique<FilterStage>(std::move(inputs[0]), std::move(function)));
}

}  // namespace

StageKind filter_stage() { return {"filter", 1, signature_of_filter, open_filter, 1}; }

}  // namespace troupe
