// Lists of hosts as Slurm writes them.
#include <fmt/format.h>

#include <algorithm>
#include <cstdint>

#include "actors/processes/launch.hpp"
#include "core/number.hpp"

namespace troupe {
namespace {

constexpr std::size_t kMostDigits = 18;  // which a number of 64 bits has room for

struct HostRange {
  std::uint64_t low = 0, high = 0;
  std::size_t width = 0;  // with zeros in front
};

// "rack[1-2]node[0-3]x": a text before each group of ranges, and one behind the last.
struct HostPattern {
  std::vector<std::string> texts;
  std::vector<std::vector<HostRange>> groups;
};

bool in_host_names(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
         c == '.' || c == '_';
}

class HostListReader {
 public:
  explicit HostListReader(std::string_view text) : text_(text) {}

  Expected<std::vector<HostPattern>> read() {
    std::vector<HostPattern> all;
    do {
      TROUPE_TRY(HostPattern pattern, this->pattern());
      all.push_back(std::move(pattern));
    } while (take(','));
    if (at_ < text_.size()) return wrong("a name of letters, digits, '-', '.' and '_'");
    return all;
  }

 private:
  bool take(char c) {
    if (at_ >= text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }
  // What stands there may be long, and anything.
  Status wrong(std::string_view wanted) const {
    std::string shown;
    for (const char c : text_.substr(0, 60)) shown += c >= ' ' && c <= '~' ? c : '?';
    if (text_.size() > 60) shown += "...";
    return invalid_argument(
        fmt::format("'{}' is no list of hosts such as node[1-3],gpu5: at character {} it wants {}",
                    shown, at_ + 1, wanted));
  }

  std::string name() {
    const std::size_t from = at_;
    while (at_ < text_.size() && in_host_names(text_[at_])) ++at_;
    return std::string(text_.substr(from, at_ - from));
  }

  Expected<HostPattern> pattern() {
    HostPattern pattern;
    pattern.texts.push_back(name());
    if (pattern.texts[0].empty()) return wrong("the name of a host");
    while (take('[')) {
      TROUPE_TRY(auto group, ranges());
      pattern.groups.push_back(std::move(group));
      pattern.texts.push_back(name());
    }
    return pattern;
  }

  Expected<std::vector<HostRange>> ranges() {
    std::vector<HostRange> all;
    do {
      HostRange range;
      const std::size_t from = at_;
      TROUPE_TRY(range.low, number());
      if (text_[from] == '0') range.width = at_ - from;
      range.high = range.low;
      if (take('-')) {
        TROUPE_TRY(range.high, number());
      }
      if (range.high < range.low) return wrong("a range that does not end before it begins");
      all.push_back(range);
    } while (take(','));
    if (!take(']')) return wrong("',' or ']'");
    return all;
  }

  Expected<std::uint64_t> number() {
    const std::size_t from = at_;
    while (at_ < text_.size() && text_[at_] >= '0' && text_[at_] <= '9') ++at_;
    if (at_ == from) return wrong("a number");
    if (at_ - from > kMostDigits) return wrong("a shorter number before it");
    return *parse_number<std::uint64_t>(text_.substr(from, at_ - from));
  }

  const std::string_view text_;
  std::size_t at_ = 0;
};

// How many names it stands for; any number above `most` for more.
std::uint64_t hosts_in(const HostPattern& pattern, std::uint64_t most) {
  std::uint64_t all = 1;
  for (const auto& group : pattern.groups) {
    std::uint64_t here = 0;
    for (const HostRange& range : group)
      here = std::min(most + 1, here + (range.high - range.low) + 1);
    all = std::min(most + 1, all * here);
  }
  return all;
}

void add_hosts(const HostPattern& pattern, std::size_t group, const std::string& before,
               std::vector<std::string>& out) {
  if (group == pattern.groups.size()) return out.push_back(before);
  for (const HostRange& range : pattern.groups[group])
    for (std::uint64_t n = range.low; n <= range.high; ++n)
      add_hosts(pattern, group + 1,
                fmt::format("{}{:0{}}{}", before, n, range.width, pattern.texts[group + 1]), out);
}

}  // namespace

Expected<std::vector<std::string>> hosts_of(std::string_view list, std::size_t most) {
  TROUPE_TRY(const std::vector<HostPattern> patterns, HostListReader(list).read());
  std::uint64_t all = 0;
  for (const HostPattern& pattern : patterns)
    all = std::min<std::uint64_t>(most + 1, all + hosts_in(pattern, most));
  if (all > most) return invalid_argument(fmt::format("the list has more than {} hosts", most));
  std::vector<std::string> names;
  for (const HostPattern& pattern : patterns) add_hosts(pattern, 0, pattern.texts[0], names);
  return names;
}

}  // namespace troupe
