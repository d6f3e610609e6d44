#include "actors/resources/mutex_state.hpp"

namespace troupe {

Expected<std::vector<Tensor>> MutexState::perform(ResourceRequest& request) {
  const std::string& verb = request.external().verb;
  const std::uint32_t replica = request.items.front().key.replica;
  std::set<std::uint32_t>& held = logs_[request.attempt.id].held;
  if (verb == kAcquireVerb) {
    if (!held.insert(replica).second)
      return failed_precondition("the run holds " + name() +
                                 " already: it has to release it before it acquires it again");
  } else if (verb == kReleaseVerb) {
    if (held.erase(replica) == 0)
      return failed_precondition("the run does not hold " + name() +
                                 ": it has to acquire it before it releases it");
  } else {
    return unimplemented("a mutex cannot be asked to '" + verb + "'");
  }
  return std::vector<Tensor>{};
}

ResourceKind mutex_kind() {
  return {.name = kMutexKind,
          .make = [](const ResourceRef& ref) -> Expected<std::unique_ptr<Resource>> {
            return std::unique_ptr<Resource>(std::make_unique<MutexState>(ref.name));
          }};
}

}  // namespace troupe
