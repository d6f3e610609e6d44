// Numbers for the characters of a text. A character is a byte, so text of any encoding round-trips;
// a non-ASCII letter in UTF-8 is several characters.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/status.hpp"
#include "ops/data/data_file.hpp"

namespace troupe::data {

// A set of bytes. The number of a byte is its rank in ascending order.
class Vocabulary {
 public:
  Vocabulary() = default;  // empty
  explicit Vocabulary(std::string_view characters);
  // All bytes that occur in a file, plain or gzipped, which is read once.
  static Expected<Vocabulary> try_of_file(const std::string& path);
  static Vocabulary of_file(const std::string& path) { return value_or_throw(try_of_file(path)); }
  static Expected<Vocabulary> try_of_file(DataFilePtr file);

  std::int64_t size() const { return std::int64_t(characters_.size()); }
  const std::string& characters() const { return characters_; }  // ascending
  // -1 if the character is not in the set.
  std::int64_t number(char character) const { return numbers_[std::uint8_t(character)]; }

  // invalid_argument for a character or number that is not in the vocabulary; the forms without
  // `try_` throw it.
  Expected<std::vector<std::int64_t>> try_encode(std::string_view text) const;
  std::vector<std::int64_t> encode(std::string_view text) const {
    return value_or_throw(try_encode(text));
  }
  Expected<std::string> try_decode(const std::vector<std::int64_t>& numbers) const;
  std::string decode(const std::vector<std::int64_t>& numbers) const {
    return value_or_throw(try_decode(numbers));
  }

 private:
  std::string characters_;
  std::array<std::int16_t, 256> numbers_ = none();
  static constexpr std::array<std::int16_t, 256> none() {
    std::array<std::int16_t, 256> numbers{};
    numbers.fill(-1);
    return numbers;
  }
};

}  // namespace troupe::data
