// JSON of what others wrote, as text.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

namespace troupe {

// On one line, without its end. What is no UTF-8 is replaced, where dump() throws.
template <class Json>
std::string json_text(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace troupe
