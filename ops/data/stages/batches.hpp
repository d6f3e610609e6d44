// Helpers for the stages that make batches.
#pragma once

#include <vector>

#include "ops/data/stack.hpp"
#include "ops/data/stage_text.hpp"

namespace troupe {

// Argument `i`: "keep" or "drop"; whether a batch that is not full is dropped.
Expected<bool> parse_remainder(const StageText& stage, std::size_t i);

// Arguments from `i` on: for each component a shape ("?" for that of the component) and a value.
Expected<std::vector<Padding>> parse_padding(const StageText& stage, std::size_t i,
                                             const Signature& input);

// The signatures of padded examples, and of batches of `rows` examples (-1: unknown).
Signature padded(Signature input, const std::vector<Padding>& padding);
Expected<Signature> batched(const Signature& input, std::int64_t rows);

// The maximum number of examples in a batch.
inline constexpr std::int64_t kMostInBatch = std::int64_t{1} << 28;
// invalid_argument for a batch size above kMostInBatch.
Status check_batch_size(std::int64_t size);

}  // namespace troupe
