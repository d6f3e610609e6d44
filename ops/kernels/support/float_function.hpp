// The definition of a function of each element of a floating tensor.
#pragma once

#include <string>
#include <utility>

#include "ops/kernels/support/types.hpp"
#include "ops/op.hpp"

namespace troupe {

inline OpDef float_function(std::string name, GradFn grad, std::string doc) {
  return {.name = std::move(name),
          .in = {"x"},
          .out = {"y"},
          .types = kFloats,
          .shape = same_shape,
          .grad = grad,
          .elementwise = true,
          .doc = std::move(doc)};
}

}  // namespace troupe
