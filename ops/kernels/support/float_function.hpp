// The definitions of a function of each element of a floating tensor, and of its gradient.
#pragma once

#include <string>
#include <utility>

#include "ops/kernels/support/one_shape.hpp"
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

// The gradient, in terms of dy and of what `of` names: x or y.
inline OpDef float_gradient(std::string name, std::string of, GradFn grad, std::string doc) {
  OpDef def = float_function(std::move(name), grad, std::move(doc));
  def.in = {"dy", std::move(of)};
  def.out = {"dx"};
  def.shape = one_shape;
  return def;
}

}  // namespace troupe
