// The JSON header of a safetensors file.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "core/dtype.hpp"
#include "core/status.hpp"
#include "serialization/safetensors.hpp"

namespace troupe::detail {

struct SafetensorsHeader {
  std::vector<SafetensorsEntry> entries;  // by begin
  std::map<std::string, std::string> metadata;
};

// "F32"; "" for a dtype that the format does not have.
std::string_view safetensors_name(DType dtype);

// The JSON text, padded. invalid_argument for text that is not UTF-8.
Expected<std::string> format_header(const SafetensorsHeader& header);

// Checks structure, duplicate names, shapes, byte counts of dtypes that Troupe has, and that the
// entries fill exactly `data_bytes`. Errors are data_loss.
Expected<SafetensorsHeader> parse_header(std::string_view json, std::uint64_t data_bytes);

}  // namespace troupe::detail
