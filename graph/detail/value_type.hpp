// Types and shapes of arguments and results beside each other.
#pragma once

#include <string>

#include "graph/value_type.hpp"

namespace troupe::detail {

inline std::string typed(const ValueType& type) {
  return std::string(dtype_name(type.dtype)) + type.shape.text();
}

// Does whoever counts on `declared` get it?
inline bool keeps(const ValueType& declared, const ValueType& is) {
  if (declared.dtype != is.dtype) return false;
  auto both = PartialShape::merge(declared.shape, is.shape);
  return both.ok() && *both == is.shape;
}

// Can a run tell whether whoever counts on `declared` gets it, if that is not known before?
inline bool may_keep(const ValueType& declared, const ValueType& is) {
  return declared.dtype == is.dtype && PartialShape::merge(declared.shape, is.shape).ok();
}

}  // namespace troupe::detail
