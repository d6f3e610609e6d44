#include "ops/data/tales.hpp"

#include <array>
#include <span>
#include <string_view>

#include "core/hash.hpp"

namespace troupe {
namespace {

using Words = std::span<const std::string_view>;

constexpr std::string_view kBeings[] = {"fox",   "miller", "baker",  "king",  "sailor",
                                        "crow",  "tailor", "wolf",   "queen", "farmer",
                                        "goose", "cat",    "hunter", "mouse", "child",
                                        "giant", "monk",   "smith",  "owl",   "merchant"};
constexpr std::string_view kQualities[] = {"old",   "young", "clever", "tired",  "hungry", "quiet",
                                           "proud", "poor",  "brave",  "lonely", "merry",  "grey"};
constexpr std::string_view kPlaces[] = {"river",   "forest", "mill",    "market",
                                        "castle",  "bridge", "garden",  "well",
                                        "kitchen", "hill",   "harbour", "tower"};
constexpr std::string_view kThings[] = {"bread", "key",    "lantern", "coin", "letter", "apple",
                                        "ring",  "basket", "candle",  "rope", "bell",   "stone"};
constexpr std::string_view kMoves[] = {"walked", "ran", "came", "went", "crept", "wandered"};
constexpr std::string_view kWays[] = {"to", "past", "around", "towards", "away from"};
constexpr std::string_view kDeeds[] = {"found", "took", "carried", "lost", "wanted", "hid", "sold"};
constexpr std::string_view kTimes[] = {"In the morning", "At night",  "One day",
                                       "After a while",  "In winter", "Before long"};
constexpr std::string_view kNumbers[] = {"two", "three", "four", "seven", "ten"};
constexpr std::string_view kVoices[] = {"said", "cried", "whispered", "answered", "asked"};

class Tales {
 public:
  explicit Tales(std::uint64_t seed) : random_(seed) {}

  std::string paragraph() {
    const std::string_view hero = pick(kBeings);
    std::string text = std::string(pick(kTimes)) + " " + someone(hero) + " " + move() + ". ";
    for (std::uint64_t left = 2 + random_.below(5); left > 0; --left) text += sentence(hero);
    text.back() = '\n';
    return text;
  }

 private:
  std::string_view pick(Words words) { return words[random_.below(words.size())]; }

  static std::string with_article(std::string_view word) {
    const bool vowel = std::string_view("aeiou").find(word[0]) != std::string_view::npos;
    return (vowel ? "an " : "a ") + std::string(word);
  }
  std::string someone(std::string_view being) {
    return with_article(pick(kQualities)) + " " + std::string(being);
  }
  std::string move() {
    return std::string(pick(kMoves)) + " " + std::string(pick(kWays)) + " the " +
           std::string(pick(kPlaces));
  }
  std::string things() {
    if (random_.below(3) != 0) return with_article(pick(kThings));
    const std::string thing(pick(kThings));
    return std::string(pick(kNumbers)) + " " + thing + (thing == "bread" ? " loaves" : "s");
  }

  std::string sentence(std::string_view hero) {
    const std::string being(hero);
    switch (random_.below(5)) {
      case 0:
        return "It " + move() + " and " + std::string(pick(kDeeds)) + " " + things() + ". ";
      case 1:
        return "\"Where is the " + std::string(pick(kThings)) + "?\" asked the " + being + ". ";
      case 2:
        return "\"I have " + things() + " from the " + std::string(pick(kPlaces)) + ",\" " +
               std::string(pick(kVoices)) + " the " + std::string(pick(kBeings)) + ". ";
      case 3:
        return "The " + being + " " + std::string(pick(kDeeds)) + " " + things() + ", and " +
               someone(pick(kBeings)) + " saw it. ";
      default:
        return "There was " + with_article(pick(kThings)) + " in the " +
               std::string(pick(kPlaces)) + ", but the " + being + " " + move() + ". ";
    }
  }

  Random random_;
};

}  // namespace

std::string draw_tales(std::uint64_t seed, std::int64_t characters) {
  Tales tales(seed);
  std::string text;
  while (std::int64_t(text.size()) < characters) text += tales.paragraph();
  text.resize(std::size_t(characters));
  return text;
}

}  // namespace troupe
