// What a plan needs to know of itself before it can run here. No actors in here.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "actors/worker/dataset_functions.hpp"
#include "actors/worker/partition_runs.hpp"
#include "core/feeds.hpp"
#include "core/ids.hpp"
#include "graph/graph_index.hpp"
#include "graph/import.hpp"
#include "graph/plan.hpp"
#include "ops/compile_host.hpp"
#include "ops/op.hpp"
#include "serialization/messages.hpp"

namespace troupe {

// The write nodes of a plan with their rules. Copies made for replicas share one rule and one key.
Expected<std::unordered_map<std::uint32_t, WriteInfo>> write_infos(const Plan& plan,
                                                                   const OpTable& ops,
                                                                   const Device& device);

// For each read of a later epoch, the keys of the writes of its variable that come before it.
std::unordered_map<std::uint32_t, std::vector<std::uint32_t>> reads_after(
    const Plan& plan, const std::unordered_map<std::uint32_t, WriteInfo>& writes);

// Names a variable or queue among all of a job, for finding conflicts.
std::uint64_t conflict_key(TaskId task, const ResourceRef& resource, const std::string& device);

// What a LoadStep became, as far as no actor is needed for it.
struct PreparedStep {
  struct Partition {
    std::uint32_t index = 0;  // in the step
    std::shared_ptr<const LoadedPlan> program;
    std::unordered_map<std::uint32_t, WriteInfo> writes;
    std::unordered_map<std::uint32_t, std::vector<std::uint32_t>> after;
    std::vector<FeedSpec> feeds;                         // in the order of Plan::feeds
    std::map<std::uint32_t, LoadedFunctions> functions;  // of datasets, by Plan::resources
  };
  Status status;
  std::vector<Partition> partitions;  // of this task
  std::vector<TaskId> tasks;          // of every partition of the step
  std::vector<Channel> channels;
};

// Graphs that a task was given, and the steps it prepares of them. Owned by a worker; after it
// was made only the compile thread touches it. Table and devices outlive it.
class StepLoader {
 public:
  // `check`: graphs come from another process, and may be anything.
  StepLoader(TaskId task, const OpTable& ops, const std::vector<Device*>& devices, bool check);

  // What is wrong with it is said of the steps that need it.
  void load(const LoadGraph& message);
  void forget(std::uint64_t session) { graphs_.erase(session); }
  // Compiles the step, checks its plans and makes the kernels of this task's partitions.
  PreparedStep prepare(const LoadStep& message, std::function<bool()> stopped);

 private:
  struct Loaded {
    std::unique_ptr<GraphImport> import;  // of a checked graph
    GraphDef trusted;
    GraphIndex index;  // of graph()
    Status status;
    FunctionLoader functions;
    const GraphDef& graph() const { return import ? import->graph() : trusted; }
  };
  Status grow(Loaded& loaded, const LoadGraph& message);
  Status prepare(const LoadStep& message, std::function<bool()> stopped, PreparedStep& out);
  Expected<PreparedStep::Partition> prepare(Plan plan, Loaded& loaded, const Target& target);

  const TaskId task_;
  const OpTable& ops_;
  const bool check_;
  const CompileHost host_;
  std::map<std::string, Device*> devices_;  // by full name
  std::map<std::uint64_t, Loaded> graphs_;  // by session
};

}  // namespace troupe
