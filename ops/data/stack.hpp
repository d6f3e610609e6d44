// Examples side by side: batches.
#pragma once

#include <span>
#include <vector>

#include "ops/data/stage.hpp"

namespace troupe {

// The values of an example, read from its source when it is only a place there.
Expected<std::vector<Tensor>> values_of(const Example& example);

// One tensor a component with the examples in dimension 0. invalid_argument when they differ in
// shape. REQUIRES: at least one.
Expected<std::vector<Tensor>> stack(std::span<const Example> examples);

// Padding of one component: an unknown dimension is as long as the longest of the batch.
struct Padding {
  PartialShape shape;
  double value = 0;  // strings are padded with empty ones
};

// The same, shorter examples filled up behind. invalid_argument for an example of another rank, or
// longer than the padding's shape. REQUIRES: at least one; a padding for each component, of known
// rank, with a value that the component's dtype holds (check_padding).
Expected<std::vector<Tensor>> stack_padded(std::span<const Example> examples,
                                           std::span<const Padding> padding);
Status check_padding(std::span<const Padding> padding, const Signature& signature);

}  // namespace troupe
