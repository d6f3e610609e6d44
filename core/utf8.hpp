// Text of anybody's, for formats that hold UTF-8 alone.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace troupe {

// The bytes of one character at the beginning of a text; 0: they are no UTF-8.
std::size_t utf8_character(std::string_view text);
bool is_utf8(std::string_view text);
// The text with U+FFFD in place of each byte that is no UTF-8.
std::string as_utf8(std::string_view text);

}  // namespace troupe
