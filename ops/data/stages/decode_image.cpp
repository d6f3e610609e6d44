// `decode_image COMPONENT PARALLEL HEIGHT WIDTH CHANNELS DTYPE FIT MOST_PIXELS`: replaces a
// component that is a PNG or JPEG file by its picture; PARALLEL of them at once.
#include "ops/data/images/picture.hpp"
#include "ops/data/stage_kind.hpp"
#include "ops/data/stages/mapped.hpp"

namespace troupe {

namespace {

struct DecodeSpec {
  std::size_t component = 0;
  std::int64_t parallel = 1;
  data::ImageOptions options;
};

Status no_file(const Signature& input, std::size_t component) {
  return invalid_argument("decode_image: component " + std::to_string(component) + " of " +
                          signature_text(input) + " is no string[]");
}

Expected<DecodeSpec> decode_spec(const StageText& stage, const Signature& input) {
  TROUPE_TRY(stage.takes(2 + kImageWords, 2 + kImageWords));
  TROUPE_TRY(const std::int64_t component, stage.number(0, 0));
  TROUPE_TRY(const std::int64_t parallel, stage.number(1, 1));
  DecodeSpec spec{std::size_t(component), parallel, {}};
  if (parallel > kMostParallel)
    return invalid_argument("decode_image: " + std::to_string(parallel) +
                            " pictures at once; at most " + std::to_string(kMostParallel) +
                            " are possible");
  if (spec.component >= input.size() || input[spec.component].dtype != DType::string ||
      !input[spec.component].shape.accepts(Shape{}))
    return no_file(input, spec.component);
  TROUPE_TRY(spec.options, parse_image_words(stage, 2));
  return spec;
}

Signature decoded_signature(Signature input, const DecodeSpec& spec) {
  input[spec.component] = {spec.options.dtype, image_shape(spec.options)};
  return input;
}

class DecodeFunction final : public ExampleFunction {
 public:
  DecodeFunction(const Signature& input, const DecodeSpec& spec)
      : arguments_(input), results_(decoded_signature(input, spec)), spec_(spec) {}
  const Signature& arguments() const override { return arguments_; }
  const Signature& results() const override { return results_; }
  Expected<std::vector<Tensor>> call(std::vector<Tensor> values, std::uint64_t) override {
    Tensor& value = values[spec_.component];
    if (value.rank() != 0) return no_file(signature_of(values), spec_.component);
    TROUPE_TRY(value, decode_image_tensor(*value.data<std::string>(), spec_.options));
    return values;
  }
  std::shared_ptr<ExampleFunction> another() const override {
    return std::make_shared<DecodeFunction>(arguments_, spec_);
  }

 private:
  Signature arguments_, results_;
  DecodeSpec spec_;
};

Expected<Signature> signature_of_decode_image(const StageText& stage,
                                              const std::vector<Signature>& inputs) {
  TROUPE_TRY(const DecodeSpec spec, decode_spec(stage, inputs[0]));
  return decoded_signature(inputs[0], spec);
}

Expected<StagePtr> open_decode_image(const StageText& stage, Signature signature, Stages inputs,
                                     StageOpening&) {
  TROUPE_TRY(const DecodeSpec spec, decode_spec(stage, inputs[0]->signature()));
  auto function = std::make_shared<DecodeFunction>(inputs[0]->signature(), spec);
  return mapped_stage(std::move(inputs[0]), std::move(function), 0, std::move(signature),
                      spec.parallel);
}

}  // namespace

StageKind decode_image_stage() {
  return {"decode_image", 1, signature_of_decode_image, open_decode_image};
}

}  // namespace troupe
