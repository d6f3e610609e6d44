#include "devices/cuda/resources.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <optional>
#include <string>
#include <vector>

namespace troupe::cuda {
namespace {

// The lines behind "Compiling entry function 'NAME' for 'ARCHITECTURE'", up to the next such line.
class Section {
 public:
  static Expected<Section> of(std::string_view log, std::string_view function,
                              std::string_view architecture) {
    constexpr std::string_view kBegin = "Compiling entry function '";
    const std::string name = fmt::format("{}{}' for '{}'", kBegin, function, architecture);
    Section section;
    int found = 0;
    bool inside = false;
    while (!log.empty()) {
      const std::string_view line = log.substr(0, log.find('\n'));
      log.remove_prefix(std::min(log.size(), line.size() + 1));
      if (line.find(kBegin) != line.npos)
        found += inside = line.find(name) != line.npos;
      else if (inside)
        section.lines_.push_back(line);
    }
    if (found == 1) return section;
    return data_loss(fmt::format("it tells {} of the function", found == 0 ? "nothing" : "twice"));
  }

  // The numbers before `unit`, each at the end of a word: of "8 bytes smem, 64 bytes lmem" 8 for
  // " bytes smem".
  Expected<std::vector<int>> numbers(std::string_view unit) const {
    std::vector<int> all;
    for (std::string_view line : lines_)
      for (std::size_t at = line.find(unit); at != line.npos; at = line.find(unit, at + 1)) {
        std::size_t begin = at;
        while (begin > 0 && line[begin - 1] >= '0' && line[begin - 1] <= '9') --begin;
        int n = 0;
        const auto [end, error] = std::from_chars(line.data() + begin, line.data() + at, n);
        const bool word = begin == 0 || line[begin - 1] == ' ';
        if (error != std::errc() || end != line.data() + at || !word)
          return data_loss(fmt::format("no number before '{}': {}", unit, line));
        all.push_back(n);
      }
    return all;
  }
  Expected<int> one(std::string_view unit) const {
    TROUPE_TRY(const std::vector<int> all, numbers(unit));
    if (all.size() == 1) return all[0];
    return data_loss(fmt::format("it has {} numbers of '{}'", all.size(), unit));
  }
  // Of parts that are only told of where there are some.
  Expected<int> one_or_none(std::string_view unit) const {
    TROUPE_TRY(const std::vector<int> all, numbers(unit));
    return all.empty() ? Expected<int>(0) : one(unit);
  }

 private:
  std::vector<std::string_view> lines_;
};

// Functions that were not inlined have lines of their own.
Expected<Resources> read(const Section& section) {
  Resources r;
  TROUPE_TRY(r.registers, section.one(" registers"));
  TROUPE_TRY(r.shared, section.one_or_none(" bytes smem"));
  TROUPE_TRY(r.stack, section.one_or_none(" bytes cumulative stack size"));
  TROUPE_TRY(const auto frames, section.numbers(" bytes stack frame"));
  TROUPE_TRY(const auto stores, section.numbers(" bytes spill stores"));
  TROUPE_TRY(const auto loads, section.numbers(" bytes spill loads"));
  if (frames.empty() || stores.size() != frames.size() || loads.size() != frames.size())
    return data_loss("it does not tell what is spilled");
  for (std::size_t i = 0; i < frames.size(); ++i) {
    r.stack = std::max(r.stack, frames[i]);
    r.spilled += stores[i] + loads[i];
  }
  if (r.registers == 0) return data_loss("it tells of 0 registers");
  return r;
}

}  // namespace

Expected<Resources> resources_of(std::string_view log, std::string_view function,
                                 std::string_view architecture) {
  Expected<Resources> all = [&]() -> Expected<Resources> {
    TROUPE_TRY(const Section section, Section::of(log, function, architecture));
    return read(section);
  }();
  if (all.ok()) return all;
  return all.status().in(fmt::format("the compiler's log of {} for {}", function, architecture));
}

}  // namespace troupe::cuda
