#include "actors/worker/resource_ids.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <random>
#include <set>
#include <utility>
#include <vector>

#include "core/hash.hpp"

using namespace troupe;

namespace {

using NamedResource = std::pair<std::string, ResourceName>;

std::vector<NamedResource> resources_of_many_names() {
  std::vector<NamedResource> all;
  for (const char* device : {"/job:worker/task:0/device:CPU:0", "/job:worker/task:1/device:CPU:0"})
    for (const char* kind : {"variable", "queue", "stack"})
      for (const char* container : {"", "a", "ab"})
        for (const char* name : {"", "b", "bc", "c"})
          all.push_back({device, {kind, container, name}});
  return all;
}

std::uint64_t always_the_same(std::string_view, const ResourceName&) { return 7; }

}  // namespace

TEST_CASE("processes that make resources in different orders give them the same ids") {
  const std::uint64_t seed = std::random_device{}();
  INFO("seed " << seed);
  Random random(seed);
  auto all = resources_of_many_names();
  ResourceIds first(TaskId{3});
  std::map<NamedResource, ResourceId> known;
  std::set<ResourceId> different;
  for (const auto& [device, name] : all) {
    const ResourceId id = value_or_throw(first.take(device, name));
    CHECK(id.task == TaskId{3});
    known[{device, name}] = id;
    different.insert(id);
  }
  CHECK(different.size() == all.size());
  for (int order = 0; order < 20; ++order) {
    std::shuffle(all.begin(), all.end(), random);
    ResourceIds other(TaskId{3});
    for (const auto& [device, name] : all)
      CHECK(value_or_throw(other.take(device, name)) == known.at({device, name}));
  }
}

TEST_CASE("of two resources with one id the second is refused by name") {
  ResourceIds ids(TaskId{0}, always_the_same);
  const ResourceId id = value_or_throw(ids.take("/cpu:0", {"queue", "", "jobs"}));
  CHECK(value_or_throw(ids.take("/cpu:0", {"queue", "", "jobs"})) == id);  // the same one
  const Status refused = ids.take("/cpu:1", {"variable", "net", ""}).status();
  CHECK(refused.code() == Code::already_exists);
  CHECK(refused.message() ==
        "variables of container 'net' on /cpu:1 has the id of queue 'jobs' on /cpu:0: give one of "
        "them another name");
  CHECK(ids.take("/cpu:1", {"queue", "", "jobs"}).status().code() == Code::already_exists);
  ids.give_back(id);
  CHECK(ids.take("/cpu:1", {"variable", "net", ""}).ok());
}

TEST_CASE("the id of a resource is for ever") {
  // Recorded: processes of two builds, and records that outlive a process, go by it.
  CHECK(resource_hash("/job:worker/task:0/device:CPU:0", {"queue", "c", "q"}) ==
        4360347993977899237u);
  CHECK(resource_hash("d", {"queue", "c", "q"}) != resource_hash("d", {"queue", "cq", ""}));
  CHECK(resource_hash("d", {"queue", "", "q"}) != resource_hash("dq", {"ueue", "", "q"}));
}
