#include "ops/data/vocabulary.hpp"

#include <bitset>

#include "ops/data/byte_stream.hpp"

namespace troupe::data {

Vocabulary::Vocabulary(std::string_view characters) {
  std::bitset<256> seen;
  for (char c : characters) seen.set(std::uint8_t(c));
  for (int c = 0; c < 256; ++c) {
    if (!seen[std::size_t(c)]) continue;
    numbers_[std::size_t(c)] = std::int16_t(characters_.size());
    characters_ += char(c);
  }
}

Expected<Vocabulary> Vocabulary::try_of_file(const std::string& path) {
  TROUPE_TRY(DataFilePtr file,
             open_plain_or_packed(path, [](const std::string& p) { return open_local_file(p); }));
  return try_of_file(std::move(file));
}

Expected<Vocabulary> Vocabulary::try_of_file(DataFilePtr file) {
  TROUPE_TRY(ByteStream stream, ByteStream::open(std::move(file)));
  std::array<bool, 256> seen{};
  for (;;) {
    TROUPE_TRY(const std::string_view chunk, stream.chunk());
    if (chunk.empty()) break;
    for (char c : chunk) seen[std::uint8_t(c)] = true;
    stream.consume(chunk.size());
  }
  std::string characters;
  for (int c = 0; c < 256; ++c)
    if (seen[std::size_t(c)]) characters += char(c);
  return Vocabulary(characters);
}

Expected<std::vector<std::int64_t>> Vocabulary::try_encode(std::string_view text) const {
  std::vector<std::int64_t> numbers;
  for (char c : text) {
    numbers.push_back(number(c));
    if (numbers.back() < 0)
      return invalid_argument("character " + std::to_string(std::uint8_t(c)) + " at " +
                              std::to_string(numbers.size() - 1) + " is not in the vocabulary");
  }
  return numbers;
}

Expected<std::string> Vocabulary::try_decode(const std::vector<std::int64_t>& numbers) const {
  std::string text;
  for (std::int64_t number : numbers) {
    if (number < 0 || number >= size())
      return invalid_argument("there is no character " + std::to_string(number) +
                              " in a vocabulary of " + std::to_string(size()));
    text += characters_[std::size_t(number)];
  }
  return text;
}

}  // namespace troupe::data
