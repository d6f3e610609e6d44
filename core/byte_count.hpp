// Numbers of bytes as people write them: "2GiB", "1.5 MiB".
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "core/status.hpp"

namespace troupe {

// A whole number, with KiB, MiB, GiB or TiB behind it or nothing; invalid_argument says what
// `option` wants.
Expected<std::uint64_t> parse_byte_count(std::string_view option, std::string_view text);
// In the largest unit of which there is one, with one digit behind the point unless that is a zero.
std::string byte_count_text(std::uint64_t bytes);

}  // namespace troupe
