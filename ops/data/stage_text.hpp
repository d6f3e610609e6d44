// The text of a stage in a node: "batch 32 drop", "csv \";\" header f32 i64=0".
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/dtype.hpp"
#include "core/shape.hpp"
#include "core/status.hpp"

namespace troupe {

// A name and arguments, separated by spaces. A word that is empty or has other characters than
// visible ASCII is quoted. Quotes, backslashes and all such characters but spaces become \xHH.
struct StageText {
  std::string name;
  std::vector<std::string> arguments;

  static Expected<StageText> parse(std::string_view text);
  std::string text() const;

  // Argument `i` as a value of that type. invalid_argument if it is missing or malformed.
  Expected<std::string> word(std::size_t i) const;
  Expected<std::int64_t> number(std::size_t i, std::int64_t least) const;
  Expected<std::int64_t> files(std::size_t i) const;  // a number of files, at least one
  Expected<std::uint64_t> seed(std::size_t i) const;
  Expected<double> real(std::size_t i) const;
  Expected<DType> dtype(std::size_t i) const;         // "f32"; not resource or list
  Expected<PartialShape> shape(std::size_t i) const;  // "[28,?]", or "?" for any
  Status takes(std::size_t least, std::size_t most) const;
};

}  // namespace troupe
