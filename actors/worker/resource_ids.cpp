#include "actors/worker/resource_ids.hpp"

namespace troupe {

Expected<ResourceId> ResourceIds::take(const std::string& device, const ResourceName& name) {
  const ResourceId id{task_, hash_(device, name)};
  const auto [at, fresh] = taken_.try_emplace(id.hash, device, name);
  const auto& [known_device, known] = at->second;
  if (fresh || (known_device == device && known == name)) return id;
  return already_exists(name.text() + " on " + device + " has the id of " + known.text() + " on " +
                        known_device + ": give one of them another name");
}

}  // namespace troupe
