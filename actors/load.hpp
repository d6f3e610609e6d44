// What a plan needs to know of itself before it can run here. No actors in here.
#pragma once

#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include "actors/executor.hpp"
#include "core/ids.hpp"
#include "graph/plan.hpp"
#include "ops/op.hpp"

namespace troupe {

// The write nodes of a plan with their rules. Copies made for replicas share one rule and one key.
Expected<std::unordered_map<std::uint32_t, WriteInfo>> write_infos(const Plan& plan,
                                                                   const OpTable& ops,
                                                                   const Device& device);

// For each read of a later epoch, the keys of the writes of its variable that come before it.
std::unordered_map<std::uint32_t, std::vector<std::uint32_t>> reads_after(
    const Plan& plan, const std::unordered_map<std::uint32_t, WriteInfo>& writes);

// The datasets that a plan reads, in the order of its resources.
std::vector<DatasetRead> dataset_reads(const Plan& plan);

// Names a variable or queue among all of a job, for finding conflicts.
std::uint64_t conflict_key(ProcessId process, const ResourceRef& resource,
                           const std::string& device);

// invalid_argument when the handle node does not describe a queue.
Expected<QueueSpec> queue_spec(const ResourceRef& resource);

}  // namespace troupe
