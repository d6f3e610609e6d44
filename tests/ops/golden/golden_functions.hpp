// What the goldens call by the names of functions, beside ops.
#pragma once

#include <string_view>
#include <vector>

#include "ops/api.hpp"
#include "tests/ops/golden/golden_file.hpp"

namespace troupe::test {

struct GoldenCall {
  Graph& g;
  const std::vector<Output>& x;
  const GoldenAttrs& attrs;
  DType dtype;
};
using GoldenFunction = std::vector<Output> (*)(const GoldenCall&);
// nullptr for the name of an op, which is called with its attributes.
GoldenFunction golden_function(std::string_view name);

}  // namespace troupe::test
