#include "core/byte_count.hpp"

#include <array>
#include <charconv>

namespace troupe {
namespace {

struct Unit {
  std::string_view name;
  int shift;
};
constexpr std::array kUnits = {Unit{"TiB", 40}, Unit{"GiB", 30}, Unit{"MiB", 20}, Unit{"KiB", 10}};

}  // namespace

Expected<std::uint64_t> parse_byte_count(std::string_view option, std::string_view text) {
  int shift = 0;
  std::string_view digits = text;
  for (const Unit& unit : kUnits)
    if (text.ends_with(unit.name)) {
      shift = unit.shift;
      digits.remove_suffix(unit.name.size());
    }
  std::uint64_t count = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), count);
  if (error != std::errc{} || end != digits.data() + digits.size() || count > ~0ull >> shift)
    return invalid_argument(std::string(option) +
                            " wants a number of bytes like 65536, 512MiB or 2GiB, not '" +
                            std::string(text) + "'");
  return count << shift;
}

std::string byte_count_text(std::uint64_t bytes) {
  for (const Unit& unit : kUnits) {
    if (bytes >> unit.shift == 0) continue;
    const std::uint64_t tenths = ((bytes >> (unit.shift - 10)) * 10) >> 10;
    const std::string fraction = tenths % 10 == 0 ? "" : "." + std::to_string(tenths % 10);
    return std::to_string(tenths / 10) + fraction + " " + std::string(unit.name);
  }
  return std::to_string(bytes) + " bytes";
}

}  // namespace troupe
