// Attributes that are lists, as shape functions of files and queues read them.
#pragma once

#include <string_view>
#include <vector>

#include "ops/op.hpp"

namespace troupe {

// That list, empty where the node has no such attribute.
template <class T>
const std::vector<T>& list_attr(const InferenceContext& c, std::string_view name) {
  static const std::vector<T> none;
  const AttrMap& attrs = c.attrs();
  auto found = attrs.find(name);
  const auto* list = found == attrs.end() ? nullptr : found->second.get<std::vector<T>>();
  return list ? *list : none;
}

}  // namespace troupe
