#include "actors/master/mutex_turns.hpp"

#include <algorithm>

#include "core/check.hpp"

namespace troupe {

std::string MutexName::text() const {
  return "mutex '" + name + "'" + (container.empty() ? "" : " of container '" + container + "'");
}

std::optional<RunId> MutexTurns::Line::before(const MutexName& mutex) const {
  if (const RunId* holder = turns_.holder(mutex)) return *holder;
  const auto at = wanted_.find(mutex);
  return at == wanted_.end() ? std::nullopt : std::optional(at->second);
}

const MutexUse* MutexTurns::Line::obstacle(const MutexUses& wanted) const {
  const auto at = std::find_if(wanted.begin(), wanted.end(),
                               [&](const MutexUse& use) { return before(use.mutex).has_value(); });
  return at == wanted.end() ? nullptr : &*at;
}

void MutexTurns::Line::waits(const RunId& run, const MutexUses& wanted) {
  for (const MutexUse& use : wanted) wanted_.try_emplace(use.mutex, run);
}

void MutexTurns::take(const RunId& run, const MutexUses& wanted) {
  for (const MutexUse& use : wanted) {
    const auto [at, added] = holders_.try_emplace(use.mutex, run);
    TROUPE_CHECK(added || at->second == run, "one run at a time holds a mutex");
  }
}

void MutexTurns::end(const RunId& run, const MutexUses& wanted) {
  for (const MutexUse& use : wanted)
    if (const auto at = holders_.find(use.mutex); at != holders_.end() && at->second == run)
      holders_.erase(at);
}

const RunId* MutexTurns::holder(const MutexName& mutex) const {
  const auto at = holders_.find(mutex);
  return at == holders_.end() ? nullptr : &at->second;
}

}  // namespace troupe
