#include <algorithm>
#include <deque>
#include <mutex>

#include "actors/resources/files.hpp"
#include "actors/resources/mutex_state.hpp"
#include "actors/resources/queue.hpp"
#include "actors/resources/resource.hpp"
#include "actors/resources/shards.hpp"

namespace troupe {
namespace {

struct Kinds {
  std::mutex mutex;
  std::deque<ResourceKind> all{queue_kind(), mutex_kind(), files_kind(),
                               shards_kind()};  // a deque: pointers stay valid
  const ResourceKind* find(const std::string& name) const {
    auto at = std::find_if(all.begin(), all.end(), [&](const auto& k) { return k.name == name; });
    return at == all.end() ? nullptr : &*at;
  }
};

Kinds& kinds() {
  static Kinds instance;
  return instance;
}

// Kinds that the worker makes itself.
bool is_reserved(const std::string& name) { return name == "variable" || name == "dataset"; }

}  // namespace

Expected<const ResourceKind*> find_resource_kind(const std::string& name) {
  std::lock_guard lock(kinds().mutex);
  if (const ResourceKind* kind = kinds().find(name)) return kind;
  return not_found("this process has no resources of the kind '" + name + "'");
}

Status add_resource_kind(ResourceKind kind) {
  if (kind.name.empty() || !kind.make)
    return invalid_argument("a kind of resource needs a name and what makes one");
  std::lock_guard lock(kinds().mutex);
  if (is_reserved(kind.name) || kinds().find(kind.name))
    return already_exists("there are resources of the kind '" + kind.name + "' already");
  kinds().all.push_back(std::move(kind));
  return ok_status();
}

std::vector<std::string> resource_kind_names() {
  std::lock_guard lock(kinds().mutex);
  std::vector<std::string> names;
  for (const ResourceKind& kind : kinds().all) names.push_back(kind.name);
  std::sort(names.begin(), names.end());
  return names;
}

}  // namespace troupe
