#include "actors/program_options.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <cstdlib>

#include "core/name.hpp"
#include "core/uncaught.hpp"

namespace troupe {
namespace {

// Of an option that the program may have itself: one that is a slip of a finger away from ours is
// taken for ours.
Status not_mistyped(std::string_view word, std::span<const ProgramOption> options) {
  if (!word.starts_with("--")) return ok_status();
  std::vector<std::string> known;
  for (const ProgramOption& option : options) known.emplace_back(option.name);
  const auto near = near_names(word, known, 1);
  if (near.empty()) return ok_status();
  return invalid_argument(
      fmt::format("there is no option '{}'; did you mean '{}'?", word, near.front()));
}

}  // namespace

Expected<std::vector<std::pair<std::string_view, std::string>>> options_given(
    int argc, char** argv, std::span<const ProgramOption> options) {
  std::vector<std::pair<std::string_view, std::string>> given;
  for (int i = 1; i < argc; ++i) {
    const std::string_view argument = argv[i];
    if (argument == "--") break;
    const std::string_view word = argument.substr(0, argument.find('='));
    const auto option = std::find_if(options.begin(), options.end(),
                                     [&](const ProgramOption& each) { return each.name == word; });
    if (option == options.end()) {
      TROUPE_TRY(not_mistyped(word, options));
      continue;
    }
    const bool joined = word.size() < argument.size(), wants = *option->value != '\0';
    if (joined && !wants) return invalid_argument(fmt::format("{} takes no value", word));
    if (wants && !joined && i + 1 == argc)
      return invalid_argument(fmt::format("{} wants a value", word));
    std::string value;
    if (wants) value = joined ? argument.substr(word.size() + 1) : std::string_view(argv[++i]);
    given.emplace_back(option->name, std::move(value));
  }
  return given;
}

std::string options_text(std::span<const ProgramOption> options) {
  std::size_t width = 24;  // so that several groups stand below each other
  std::vector<std::string> words;
  for (const ProgramOption& option : options) {
    words.push_back(fmt::format("{} {}", option.name, option.value));
    width = std::max(width, words.back().size());
  }
  std::string text;
  for (std::size_t i = 0; i < options.size(); ++i)
    text += fmt::format("  {:<{}}  {}\n", words[i], width, options[i].about);
  return text;
}

void answer_help(int argc, char** argv, const std::string& options_text) {
  end_with_code_if_uncaught();
  for (int i = 1; i < argc && std::string_view(argv[i]) != "--"; ++i) {
    if (std::string_view(argv[i]) != "--help") continue;
    const std::string text = fmt::format("usage: {} [options]\n{}", argv[0], options_text);
    std::fputs(text.c_str(), stdout);
    std::exit(std::fflush(stdout) == 0 ? 0 : 1);
  }
}

Expected<std::int64_t> parse_count(std::string_view option, std::string_view text, std::int64_t low,
                                   std::int64_t high) {
  std::int64_t value = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size() || value < low || value > high)
    return invalid_argument(
        fmt::format("{} wants a number from {} to {}, not '{}'", option, low, high, text));
  return value;
}

}  // namespace troupe
