// `parse_example COMPONENT {NAME DTYPE SHAPE list|raw DTYPE SHAPE}...`: replaces a component
// of tf.Example messages by their features (ops/data/records/example_message.hpp). The last two
// words of a feature are the type of its default, a tensor of the node; "- -" if it has none.
#include "ops/data/records/example_message.hpp"
#include "ops/data/sources/tensors.hpp"
#include "ops/data/stage_kind.hpp"
#include "ops/data/stages/mapped.hpp"

namespace troupe {

namespace {

constexpr std::size_t kWords = 6;  // of a feature

struct ParseSpec {
  std::size_t component = 0;
  std::vector<data::Feature> features;        // without their defaults
  std::vector<std::optional<Shape>> missing;  // of the default of each
};

Status no_record(const Signature& input, std::size_t component) {
  return invalid_argument("parse_example: component " + std::to_string(component) + " of " +
                          signature_text(input) + " is no string[]");
}

Status add_feature(const StageText& stage, std::size_t i, ParseSpec& spec) {
  data::Feature& feature = spec.features.emplace_back();
  std::optional<Shape>& missing = spec.missing.emplace_back();
  feature.name = stage.arguments[i];
  TROUPE_TRY(feature.dtype, stage.dtype(i + 1));
  TROUPE_TRY(feature.shape, stage.shape(i + 2));
  feature.raw = stage.arguments[i + 3] == "raw";
  if (!feature.raw && stage.arguments[i + 3] != "list")
    return invalid_argument("stage '" + stage.text() + "' says neither list nor raw");
  if (stage.arguments[i + 4] == "-") return ok_status();
  TROUPE_TRY(const DType dtype, stage.dtype(i + 4));
  TROUPE_TRY(const PartialShape partial, stage.shape(i + 5));
  if (!partial.fully_known())
    return invalid_argument("the default of feature '" + feature.name + "' has no shape");
  TROUPE_TRY(const Shape shape, Shape::make(partial.dims()));
  if (dtype != feature.dtype || (shape.elements() != 1 && !feature.shape.accepts(shape)))
    return invalid_argument("feature '" + feature.name + "': its default is " +
                            std::string(dtype_name(dtype)) + shape.text() + ", and it is " +
                            std::string(dtype_name(feature.dtype)) + feature.shape.text());
  missing = shape;
  return ok_status();
}

Expected<ParseSpec> parse_spec(const StageText& stage, const Signature& input) {
  if (stage.arguments.size() == 1)
    return invalid_argument("parse_example: the list of features is empty");
  TROUPE_TRY(stage.takes(1 + kWords, 1 + kWords * 1024));
  if (stage.arguments.size() % kWords != 1)
    return invalid_argument("stage '" + stage.text() + "' has a feature without a type");
  TROUPE_TRY(const std::int64_t component, stage.number(0, 0));
  ParseSpec spec{std::size_t(component), {}, {}};
  if (spec.component >= input.size() || input[spec.component].dtype != DType::string ||
      !input[spec.component].shape.accepts(Shape{}))
    return no_record(input, spec.component);
  for (std::size_t i = 1; i < stage.arguments.size(); i += kWords)
    TROUPE_TRY(add_feature(stage, i, spec));
  return spec;
}

Signature with_features(const Signature& input, std::size_t component, const Signature& features) {
  Signature all = input;
  const auto at = all.erase(all.begin() + std::ptrdiff_t(component));
  all.insert(at, features.begin(), features.end());
  return all;
}

class ParseFunction final : public ExampleFunction {
 public:
  ParseFunction(const Signature& input, std::size_t component,
                std::shared_ptr<const ExampleMessages> messages)
      : arguments_(input),
        results_(with_features(input, component, messages->signature())),
        component_(component),
        messages_(std::move(messages)) {}
  const Signature& arguments() const override { return arguments_; }
  const Signature& results() const override { return results_; }
  Expected<std::vector<Tensor>> call(std::vector<Tensor> values, std::uint64_t) override {
    if (values[component_].rank() != 0) return no_record(signature_of(values), component_);
    TROUPE_TRY(std::vector<Tensor> features,
               messages_->parse(*values[component_].data<std::string>()));
    const auto at = values.erase(values.begin() + std::ptrdiff_t(component_));
    values.insert(at, std::make_move_iterator(features.begin()),
                  std::make_move_iterator(features.end()));
    return values;
  }
  std::shared_ptr<ExampleFunction> another() const override {
    return std::make_shared<ParseFunction>(arguments_, component_, messages_);
  }

 private:
  Signature arguments_, results_;
  std::size_t component_;
  std::shared_ptr<const ExampleMessages> messages_;
};

Expected<Signature> signature_of_parse_example(const StageText& stage,
                                               const std::vector<Signature>& inputs) {
  TROUPE_TRY(ParseSpec spec, parse_spec(stage, inputs[0]));
  TROUPE_TRY(const ExampleMessages messages, ExampleMessages::make(std::move(spec.features)));
  return with_features(inputs[0], spec.component, messages.signature());
}

Expected<StagePtr> open_parse_example(const StageText& stage, Signature signature, Stages inputs,
                                      StageOpening& opening) {
  TROUPE_TRY(ParseSpec spec, parse_spec(stage, inputs[0]->signature()));
  for (std::size_t i = 0; i < spec.features.size(); ++i) {
    if (!spec.missing[i]) continue;
    data::Feature& feature = spec.features[i];
    TROUPE_TRY(const std::string_view bytes, opening.next_tensor());
    TROUPE_TRY(feature.missing, tensor_of(feature.dtype, *spec.missing[i], bytes));
  }
  TROUPE_TRY(ExampleMessages messages, ExampleMessages::make(std::move(spec.features)));
  auto function =
      std::make_shared<ParseFunction>(inputs[0]->signature(), spec.component,
                                      std::make_shared<const ExampleMessages>(std::move(messages)));
  return mapped_stage(std::move(inputs[0]), std::move(function), 0, std::move(signature), 1);
}

}  // namespace

StageKind parse_example_stage() {
  return {"parse_example", 1, signature_of_parse_example, open_parse_example};
}

}  // namespace troupe
