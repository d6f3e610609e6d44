#include "ops/data/stage_text.hpp"

#include <charconv>

namespace troupe {

namespace {

constexpr char kHex[] = "0123456789abcdef";

bool is_plain(char c) { return c > ' ' && c <= '~' && c != '"' && c != '\\'; }

void append_word(std::string& out, std::string_view word) {
  bool plain = !word.empty();
  for (char c : word) plain = plain && is_plain(c);
  if (plain) {
    out += word;
    return;
  }
  out += '"';
  for (char c : word) {
    if (is_plain(c) || c == ' ')
      out += c;
    else
      out += {'\\', 'x', kHex[std::uint8_t(c) >> 4], kHex[std::uint8_t(c) & 15]};
  }
  out += '"';
}

Status malformed(std::string_view text) {
  return invalid_argument("'" + std::string(text) + "' is no stage of a pipeline");
}

// Takes one word from the front of `left`.
Expected<std::string> take_word(std::string_view& left, std::string_view whole) {
  std::string word;
  if (left[0] != '"') {
    while (!left.empty() && left[0] != ' ') {
      if (!is_plain(left[0])) return malformed(whole);
      word += left[0];
      left.remove_prefix(1);
    }
    if (word.empty()) return malformed(whole);
    return word;
  }
  left.remove_prefix(1);
  while (!left.empty() && left[0] != '"') {
    if (left[0] != '\\') {
      word += left[0];
      left.remove_prefix(1);
      continue;
    }
    unsigned value = 0;
    if (left.size() < 4 || left[1] != 'x' ||
        std::from_chars(left.data() + 2, left.data() + 4, value, 16).ptr != left.data() + 4)
      return malformed(whole);
    word += char(value);
    left.remove_prefix(4);
  }
  if (left.empty()) return malformed(whole);
  left.remove_prefix(1);
  return word;
}

template <class T>
Expected<T> parsed(const StageText& stage, std::size_t i, const char* what) {
  TROUPE_TRY(const std::string word, stage.word(i));
  T value{};
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), value);
  if (error != std::errc{} || end != word.data() + word.size())
    return invalid_argument("stage '" + stage.text() + "': '" + word + "' is not " + what);
  return value;
}

}  // namespace

Expected<StageText> StageText::parse(std::string_view text) {
  std::vector<std::string> words;
  std::string_view left = text;
  while (!left.empty()) {
    if (!words.empty()) {
      if (left[0] != ' ' || left.size() == 1) return malformed(text);
      left.remove_prefix(1);
    }
    TROUPE_TRY(std::string word, take_word(left, text));
    words.push_back(std::move(word));
  }
  if (words.empty() || words[0].empty()) return malformed(text);
  StageText stage{std::move(words[0]), {}};
  stage.arguments.assign(std::make_move_iterator(words.begin() + 1),
                         std::make_move_iterator(words.end()));
  return stage;
}

std::string StageText::text() const {
  std::string out = name;
  for (const std::string& argument : arguments) {
    out += ' ';
    append_word(out, argument);
  }
  return out;
}

Expected<std::string> StageText::word(std::size_t i) const {
  if (i >= arguments.size())
    return invalid_argument("stage '" + text() + "' lacks argument " + std::to_string(i + 1));
  return arguments[i];
}

Expected<std::int64_t> StageText::number(std::size_t i, std::int64_t least) const {
  TROUPE_TRY(const auto value, parsed<std::int64_t>(*this, i, "a whole number"));
  if (value < least)
    return invalid_argument("stage '" + text() + "': " + std::to_string(value) + " is less than " +
                            std::to_string(least));
  return value;
}

Expected<std::int64_t> StageText::files(std::size_t i) const {
  TROUPE_TRY(const std::int64_t files, number(i, 0));
  if (files == 0) return invalid_argument(name + ": the list of files is empty");
  return files;
}

Expected<std::uint64_t> StageText::seed(std::size_t i) const {
  return parsed<std::uint64_t>(*this, i, "a seed");
}

Expected<double> StageText::real(std::size_t i) const {
  return parsed<double>(*this, i, "a number");
}

Expected<DType> StageText::dtype(std::size_t i) const {
  TROUPE_TRY(const std::string word, this->word(i));
  const auto named = parse_dtype(word);
  if (!named || dtype_size(*named) == 0)
    return invalid_argument("stage '" + text() + "': '" + word + "' is no dtype of tensors");
  return *named;
}

Expected<PartialShape> StageText::shape(std::size_t i) const {
  TROUPE_TRY(const std::string word, this->word(i));
  const auto wrong = [&] {
    return invalid_argument("stage '" + text() + "': '" + word + "' is no shape");
  };
  if (word == "?") return PartialShape::unknown();
  if (word.size() < 2 || word.front() != '[' || word.back() != ']') return wrong();
  std::vector<std::int64_t> dims;
  std::string_view left = std::string_view(word).substr(1, word.size() - 2);
  while (!left.empty()) {
    const std::string_view entry = left.substr(0, left.find(','));
    std::int64_t dim = PartialShape::kUnknown;
    if (entry != "?" && (std::from_chars(entry.data(), entry.data() + entry.size(), dim).ptr !=
                             entry.data() + entry.size() ||
                         entry.empty() || dim < 0))
      return wrong();
    dims.push_back(dim);
    left.remove_prefix(entry.size());
    if (left == ",") return wrong();
    if (!left.empty()) left.remove_prefix(1);
  }
  return PartialShape::make(dims);
}

Status StageText::takes(std::size_t least, std::size_t most) const {
  if (arguments.size() >= least && arguments.size() <= most) return ok_status();
  return invalid_argument("stage '" + text() + "' has " + std::to_string(arguments.size()) +
                          " arguments, not " + std::to_string(least) +
                          (least == most ? "" : " to " + std::to_string(most)));
}

}  // namespace troupe
