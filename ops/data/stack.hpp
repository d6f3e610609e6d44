// Batches of examples.
#pragma once

#include <span>
#include <vector>

#include "ops/data/stage.hpp"

namespace troupe {

// The values of an example; reads them from its source if needed.
Expected<std::vector<Tensor>> values_of(Example example);

// One tensor per component, with the examples along dimension 0. invalid_argument if shapes differ.
// REQUIRES: at least one example.
Expected<std::vector<Tensor>> stack(std::span<const Example> examples);

// Padding of one component; an unknown dimension becomes as long as the longest of the batch.
struct Padding {
  PartialShape shape;
  double value = 0;  // strings are padded with empty ones
};

// The same, with shorter examples padded at the end. invalid_argument if an example has another
// rank or exceeds the padding's shape. REQUIRES: at least one example, and for each component a
// padding of known rank whose value the component's dtype can hold (check_padding).
Expected<std::vector<Tensor>> stack_padded(std::span<const Example> examples,
                                           std::span<const Padding> padding);
Status check_padding(std::span<const Padding> padding, const Signature& signature);

}  // namespace troupe
