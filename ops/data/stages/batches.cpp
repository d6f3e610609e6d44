#include "ops/data/stages/batches.hpp"

namespace troupe {

Expected<bool> parse_remainder(const StageText& stage, std::size_t i) {
  TROUPE_TRY(const std::string word, stage.word(i));
  if (word != "keep" && word != "drop")
    return invalid_argument("stage '" + stage.text() + "' says neither keep nor drop");
  return word == "drop";
}

Expected<std::vector<Padding>> parse_padding(const StageText& stage, std::size_t i,
                                             const Signature& input) {
  // Two words for each component.
  if (stage.arguments.size() > i + 2 * input.size())
    return invalid_argument(stage.name + ": paddings for " +
                            std::to_string((stage.arguments.size() - i) / 2) +
                            " components, and examples have " + std::to_string(input.size()) +
                            ": " + signature_text(input));
  TROUPE_TRY(stage.takes(i + 2 * input.size(), i + 2 * input.size()));
  std::vector<Padding> padding;
  for (const Component& component : input) {
    Padding one;
    TROUPE_TRY(one.shape, stage.shape(i++));
    TROUPE_TRY(one.value, stage.real(i++));
    if (!one.shape.known_rank()) one.shape = component.shape;
    padding.push_back(std::move(one));
  }
  TROUPE_TRY(check_padding(padding, input));
  return padding;
}

Signature padded(Signature input, const std::vector<Padding>& padding) {
  for (std::size_t c = 0; c < input.size(); ++c) input[c].shape = padding[c].shape;
  return input;
}

Expected<Signature> batched(const Signature& input, std::int64_t rows) {
  Signature out = input;
  for (Component& component : out) {
    if (!component.shape.known_rank()) continue;
    std::vector<std::int64_t> dims{rows};
    dims.insert(dims.end(), component.shape.dims().begin(), component.shape.dims().end());
    TROUPE_TRY(component.shape, PartialShape::make(dims));
  }
  return out;
}

Status check_batch_size(std::int64_t size) {
  if (size <= kMostInBatch) return ok_status();
  return invalid_argument("a batch has at most " + std::to_string(kMostInBatch) +
                          " examples, not " + std::to_string(size));
}

}  // namespace troupe
