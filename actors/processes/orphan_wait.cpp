#include "actors/processes/orphan_wait.hpp"

#include <fmt/format.h>

namespace troupe {

OrphanWait::Next OrphanWait::ended(const Status& how) {
  // An address may be known to a name service only when somebody is there. What is refused for any
  // other reason is refused again.
  const bool may_pass = how.code() == Code::unavailable || how.code() == Code::not_found;
  if (how.ok() || !may_pass || limit_ == Instant(0)) return Next::end;
  if (joined_) return Next::anew;
  last_ = how;
  return over() ? Next::end : Next::retry;
}

std::string OrphanWait::news() {
  if (told_ || joined_ || limit_ == Instant(0) || waited() < kSilent) return {};
  told_ = true;
  return fmt::format("waiting at most {:g} s for a master at {}{}",
                     std::chrono::duration<double>(limit_).count(), master_,
                     last_.ok() ? "" : ": " + last_.message());
}

Status OrphanWait::gave_up() const {
  std::string text = fmt::format("no master at {} within {:g} s", master_,
                                 std::chrono::duration<double>(limit_).count());
  if (!last_.ok()) text += ": " + last_.message();
  return unavailable(std::move(text));
}

}  // namespace troupe
