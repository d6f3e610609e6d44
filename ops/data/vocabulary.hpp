// The characters of a text, numbered. Characters are bytes: text of any encoding goes through and
// comes back as it was, a letter of UTF-8 outside of ASCII as several.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/status.hpp"
#include "ops/data/data_file.hpp"

namespace troupe::data {

// A set of bytes; the number of one is its place among them in ascending order.
class Vocabulary {
 public:
  Vocabulary() = default;  // of no characters
  explicit Vocabulary(std::string_view characters);
  // Of all that occurs in a file, which is read once, in pieces; one packed by gzip is unpacked.
  static Expected<Vocabulary> try_of_file(const std::string& path);
  static Vocabulary of_file(const std::string& path) { return value_or_throw(try_of_file(path)); }
  static Expected<Vocabulary> try_of_file(DataFilePtr file);

  std::int64_t size() const { return std::int64_t(characters_.size()); }
  const std::string& characters() const { return characters_; }  // ascending
  // -1: it is none of them.
  std::int64_t number(char character) const { return numbers_[std::uint8_t(character)]; }

  // invalid_argument, thrown by the ones without `try_`, for what is not in the vocabulary.
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
