#include "actors/master/last_writes.hpp"

#include <algorithm>

namespace troupe {
namespace {

bool any_after(const std::unordered_map<std::uint64_t, CommitNumber>& last,
               const std::vector<std::uint64_t>& used, CommitNumber snapshot) {
  return std::any_of(used.begin(), used.end(), [&](std::uint64_t id) {
    auto at = last.find(id);
    return at != last.end() && at->second > snapshot;
  });
}

}  // namespace

void LastWrites::note(const Uses& uses, CommitNumber s) {
  for (std::uint64_t id : uses.updates) writes_[id] = s;
  for (std::uint64_t id : uses.enqueues) enqueues_[id] = s;
}

bool LastWrites::after(CommitNumber snapshot, const Uses& uses) const {
  return any_after(writes_, uses.reads, snapshot) ||
         any_after(enqueues_, uses.own_dequeues, snapshot);
}

void LastWrites::forget_up_to(CommitNumber least) {
  auto old = [&](const auto& entry) { return entry.second <= least; };
  std::erase_if(writes_, old);
  std::erase_if(enqueues_, old);
}

}  // namespace troupe
