// Prepares the plans of a step for running in this process. No actors in here.
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

// The write nodes of a plan with their rules. Copies of a node for replicas share one rule and key.
Expected<std::unordered_map<std::uint32_t, WriteInfo>> write_infos(const Plan& plan,
                                                                   const OpTable& ops,
                                                                   Device& device);

// For each copy that a node without an order has for a replica: the first of these copies.
std::unordered_map<std::uint32_t, std::uint32_t> first_copies(const Plan& plan);

// For each read of an epoch after 0, the keys of earlier writes of its variable.
std::unordered_map<std::uint32_t, std::vector<std::uint32_t>> reads_after(
    const Plan& plan, const std::unordered_map<std::uint32_t, WriteInfo>& writes);

// The key of a variable or queue in the whole job, for finding conflicts.
std::uint64_t conflict_key(TaskId task, const ResourceRef& resource, const std::string& device);

// The result of a LoadStep, before actors are made.
struct PreparedStep {
  struct Partition {
    std::uint32_t index = 0;  // in the step
    std::shared_ptr<const LoadedPlan> program;
    std::unordered_map<std::uint32_t, WriteInfo> writes;
    std::unordered_map<std::uint32_t, std::uint32_t> copies;
    std::unordered_map<std::uint32_t, std::vector<std::uint32_t>> after;
    std::vector<FeedSpec> feeds;                         // in the order of Plan::feeds
    std::map<std::uint32_t, LoadedFunctions> functions;  // of datasets, by Plan::resources
  };
  Status status;
  std::vector<Partition> partitions;  // those of this task
  std::vector<TaskId> tasks;          // of all partitions of the step, by index
  std::vector<Channel> channels;
};

// Keeps the graphs that a task was sent, and prepares steps of them. Owned by a worker; used only
// by the compile thread. Table and devices outlive it.
class StepLoader {
 public:
  // `check`: graphs come from another process and are not trusted.
  StepLoader(TaskId task, const OpTable& ops, const std::vector<Device*>& devices, bool check);

  // Errors are reported by prepare() for steps that need the graph.
  void load(const LoadGraph& message);
  void forget(std::uint64_t session) { graphs_.erase(session); }
  // Compiles the step, and loads the plans of this task's partitions with their kernels.
  PreparedStep prepare(const LoadStep& message, std::function<bool()> stopped);

 private:
  struct Loaded {
    std::unique_ptr<GraphImport> import;  // if graphs are checked
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
