#include "graph/compile.hpp"

#include <algorithm>
#include <unordered_set>

#include "graph/control/distribute/distributed_loops.hpp"
#include "graph/control/lowering/frames.hpp"
#include "graph/control/lowering/lower.hpp"
#include "graph/control/paper_loops/raise.hpp"
#include "graph/control/state/state.hpp"
#include "graph/graph_index.hpp"
#include "graph/optional_stages.hpp"
#include "graph/passes/feeds.hpp"
#include "graph/passes/make_plan.hpp"
#include "graph/passes/partition.hpp"
#include "graph/passes/pass.hpp"
#include "graph/passes/placement.hpp"
#include "graph/passes/replicate.hpp"

namespace troupe {
namespace {

constexpr std::int32_t kMaxReplicas = 1024;  // each copies nodes

struct Stage {
  std::string_view name;
  Status (*run)(StepGraph&, const Target&);
  bool optional = false;  // a request may switch it off
};

// What happens between "the ports that the client named" and "one device after another".
constexpr Stage kStages[] = {
    {"prune", prune},          // what fetches and targets need
    {"raise", raise_loops},    // While in the place of cycles
    {"state", thread_state},   // values in the place of variables that loops use
    {"lower", lower},          // functions in the place of calls
    {"fold", fold, true},      // compute now what depends on constants alone
    {"cse", cse, true},        // one node for many that compute the same
    {"sweep", prune},          // what the two left without readers
    {"order", order_writes},   // writes of one variable, epochs of reads
    {"replicate", replicate},  // N copies of what depends on a replica's data
    {"place", place},          // a device for every node
    {"fuse", fuse, true},      // one node for a convolution or a product and what follows on it
};

Status check(const CompileRequest& request, const Target& target) {
  TROUPE_CHECK(target.ops != nullptr, "a target knows its ops");
  if (target.devices.empty()) return invalid_argument("there are no devices to run on");
  std::unordered_set<std::string> names;
  for (const TargetDevice& device : target.devices) {
    if (!device.name.full())
      return invalid_argument("device '" + device.name.text() + "' lacks a part of its name");
    if (!names.insert(device.name.text()).second)
      return invalid_argument("device '" + device.name.text() + "' is listed twice");
  }
  if (request.replicas < 1 || request.replicas > kMaxReplicas)
    return invalid_argument("replicas must be between 1 and " + std::to_string(kMaxReplicas) +
                            ", not " + std::to_string(request.replicas));
  return ok_status();
}

bool is_off(std::string_view pass, const Target& target) {
  return std::find(target.disabled.begin(), target.disabled.end(), pass) != target.disabled.end();
}

}  // namespace

std::vector<std::string> stage_names() {
  std::vector<std::string> names;
  for (const Stage& stage : kStages) names.emplace_back(stage.name);
  return names;
}

std::vector<std::string> optional_stage_names() {
  std::vector<std::string> names;
  for (const Stage& stage : kStages)
    if (stage.optional) names.emplace_back(stage.name);
  return names;
}

Expected<CompiledGraph> compile(const GraphDef& graph, const CompileRequest& request,
                                const Target& target, const StageObserver& observer) {
  GraphIndex index;
  return compile(graph, index, request, target, observer);
}

Expected<CompiledGraph> compile(const GraphDef& graph, GraphIndex& index,
                                const CompileRequest& request, const Target& target,
                                const StageObserver& observer) {
  auto observe = [&](std::string_view stage, const GraphDef& now) {
    if (observer) observer(stage, now);
  };
  TROUPE_TRY(check(request, target));
  TROUPE_TRY(index.extend(graph, *target.ops));
  // An observer sees the whole graph before the rest of it is pruned.
  TROUPE_TRY(StepGraph step, observer ? feed_and_fetch(graph, index, request, *target.ops)
                                      : feed_and_take(graph, index, request, *target.ops));
  observe("feeds", step.graph);
  for (const Stage& stage : kStages) {
    if (!stage.optional || !is_off(stage.name, target)) {
      if (target.stopped && target.stopped()) return cancelled("the compile was stopped");
      TROUPE_TRY(stage.run(step, target));
      observe(stage.name, step.graph);
    }
    for (const PassDef& pass : target.passes) {
      if (pass.after != stage.name || is_off(pass.name, target)) continue;
      if (Status s = pass.run(step, target); !s.ok()) return s.in("in pass " + pass.name);
      observe(pass.name, step.graph);
    }
  }
  TROUPE_TRY(Frames placed, find_frames(step.graph, *target.ops));
  TROUPE_TRY(functions_on_one_device(step.graph, placed, *target.ops));
  const DistributedLoops loops = distribute_loops(step, placed, *target.ops);
  observe("distribute", step.graph);
  TROUPE_TRY(Partitions partitions, partition(step, loops, target));
  observe("partition", step.graph);

  TROUPE_TRY(Frames frames, find_frames(step.graph, *target.ops));
  CompiledGraph out;
  out.notes = std::move(step.notes);
  out.plans = make_plans(std::move(step), partitions, frames, *target.ops);
  out.channels = std::move(partitions.channels);
  out.feeds = std::uint32_t(request.feeds.size());
  out.fetches = std::uint32_t(request.fetches.size());
  return out;
}

}  // namespace troupe
