// What tests ask of texts.
#pragma once

#include <string_view>

namespace troupe::test {

inline bool contains(std::string_view text, std::string_view part) {
  return text.find(part) != text.npos;
}

}  // namespace troupe::test
