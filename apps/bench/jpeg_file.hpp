// JPEG files by libjpeg-turbo alone: what `troupe bench input` reads, and what it compares with.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace troupe {

// A picture in RGB, with content like that of photographs, drawn from `seed`.
std::string drawn_jpeg_file(int height, int width, std::uint64_t seed);

// Decodes such a file into `pixels`, which grows as needed.
void decode_by_libjpeg(std::string_view file, std::vector<unsigned char>& pixels);

}  // namespace troupe
