// Bytes that are written where a string keeps them.
#pragma once

#include <span>
#include <string>

#include "core/function_ref.hpp"
#include "core/status.hpp"

namespace troupe {

// Appends `bytes` bytes, which `fill` writes. After an error of it the string is as it was before.
Status append_bytes(std::string& out, std::size_t bytes, FunctionRef<Status(std::span<char>)> fill);

}  // namespace troupe
