// Requests of partitions to resources, and the answers, for all kinds and verbs.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "core/transaction.hpp"
#include "graph/plan.hpp"

namespace troupe {

struct UpdateRule;  // variable_store.hpp

// Verbs for resources of any kind (SaveResource, LoadResource): return the state as a tensor of
// bytes (serialization/resource_state.hpp); take that state when the run commits.
inline constexpr const char* kSaveStateVerb = "save_state";
inline constexpr const char* kLoadStateVerb = "load_state";

// Mutexes, which the master handles, too.
inline constexpr const char* kMutexKind = "mutex";
inline constexpr const char* kAcquireVerb = "acquire";
inline constexpr const char* kReleaseVerb = "release";

// From an executor to a resource of its process. Answered once with a ResourceAnswer. Neither is
// lost or duplicated.
struct ResourceRequest {
  // One node of the plan. Both pointers are into `plan`.
  struct Item {
    const PlanInfo* node = nullptr;  // its verb, attributes and replica
    const ResourceRef* resource = nullptr;
    WriteKey key;
    std::shared_ptr<const UpdateRule> rule;  // of nodes with External::Order::write
    std::uint64_t position = 0;              // of the requested element of a dataset
    std::vector<Tensor> operands;            // its data inputs, complete
    std::uint64_t elements = 1;              // taken by the run of a dataset: one per replica

    std::uint32_t replica() const { return std::uint32_t(std::max(0, node->replica)); }
  };
  std::uint64_t id = 0;
  AttemptInfo attempt;
  CommitNumber commit = 0;           // a granted number: log, stage and commit in one
  std::vector<Item> items;           // at least one; of one verb, or writes of one container
  std::vector<std::uint32_t> after;  // ordered reads: keys of the run's own writes before them
  std::shared_ptr<const void> plan;  // keeps the items' pointers valid

  const External& external() const { return *items.front().node->external; }
};

struct ResourceAnswer {
  AttemptId attempt;
  std::uint64_t id = 0;  // the request's
  Status status;
  std::vector<Tensor> values;  // the outputs of all items, in order
  // Names of other resources of the container that the run has seen.
  std::vector<std::string> also_seen;
  bool own = false;            // some element is the run's own
  CommitNumber committed = 0;  // the granted number, if it was used
};

}  // namespace troupe
