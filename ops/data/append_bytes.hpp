// Bytes that are written where a string keeps them.
#pragma once

#include <span>
#include <string>

#include "core/function_ref.hpp"
#include "core/status.hpp"

namespace troupe {

// Appends `bytes` bytes, which `fill` writes, and `more` behind them that are only lent to it.
// After an error of it the string is as it was before.
Status append_bytes(std::string& out, std::size_t bytes, std::size_t more,
                    FunctionRef<Status(std::span<char>)> fill);

}  // namespace troupe
