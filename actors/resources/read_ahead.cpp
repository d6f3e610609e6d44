#include "actors/resources/read_ahead.hpp"

#include <algorithm>

namespace troupe {
namespace {

template <class Lines>
auto first_of(Lines& lines) {
  return std::min_element(lines.begin(), lines.end(), [](const auto& a, const auto& b) {
    return a.second.next < b.second.next;
  });
}

}  // namespace

bool ReadAhead::asked(std::uint32_t replica, std::uint64_t position, std::uint64_t elements) {
  const std::uint64_t following = position + elements;
  auto [at, first] = lines_.try_emplace(replica, Line{following, elements});
  all_known_ = all_known_ || !first;
  Line& line = at->second;
  const bool goes_on = line.stride == elements && position <= line.next &&
                       line.next <= following + most_ * elements &&
                       (line.next - position) % elements == 0;
  if (!goes_on) line = {following, elements};
  line.next = std::max(line.next, following);
  return !first && !goes_on;
}

bool ReadAhead::awaited(std::uint64_t position) const {
  const auto comes_to = [&](const auto& line) {
    return position % line.second.stride == line.second.next % line.second.stride;
  };
  return !all_known_ || std::any_of(lines_.begin(), lines_.end(), comes_to);
}

std::optional<std::uint64_t> ReadAhead::next(std::size_t held) const {
  if (lines_.empty() || held >= most_ * lines_.size()) return std::nullopt;
  return first_of(lines_)->second.next;
}

void ReadAhead::made() {
  Line& line = first_of(lines_)->second;
  line.next += line.stride;
}

}  // namespace troupe
