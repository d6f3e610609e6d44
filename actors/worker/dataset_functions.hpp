// The functions of the graph that the stages of datasets call, compiled for this process.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "actors/burst/step_state.hpp"
#include "graph/request.hpp"
#include "ops/data/example_function.hpp"
#include "ops/op.hpp"

namespace troupe {

// Immutable: any number of datasets call it, each with a step of its own. Its device has no
// threads: it computes on that of the caller.
struct LoadedFunction {
  Signature arguments, results;
  std::uint64_t hash = 0;  // of all that it computes
  std::shared_ptr<Device> device;
  std::shared_ptr<const LoadedPlan> program;
};
using LoadedFunctions = std::vector<std::shared_ptr<const LoadedFunction>>;

// Those of one graph, each compiled once. Owned by the compile thread.
class FunctionLoader {
 public:
  // Those that the dataset's node names, in that order. `target` says how the step is compiled that
  // reads the dataset; whatever devices nodes of the functions name, they run on the CPU.
  // not_found for one that the graph lacks, invalid_argument for one that wants more than elements
  // or asks for anything outside of itself, resource_exhausted when all of them are too large.
  // REQUIRES: what was loaded before was of the same graph, which has only grown.
  Expected<LoadedFunctions> load(const GraphDef& graph, const NodeDef& dataset,
                                 const Target& target, const OpTable& ops);

 private:
  const FunctionDef* find(const GraphDef& graph, const std::string& name);
  std::vector<FunctionDef> with_callees(const GraphDef& graph, const FunctionDef& f,
                                        const OpRegistry& ops);
  Expected<std::shared_ptr<const LoadedFunction>> load(const GraphDef& graph, const FunctionDef& f,
                                                       const Target& target, const OpTable& ops);

  std::unordered_map<std::string, std::size_t> positions_;  // in the graph, by name
  std::size_t indexed_ = 0;                                 // functions of it that are there
  // By name and the passes that are switched off.
  std::map<std::pair<std::string, std::vector<std::string>>, std::shared_ptr<const LoadedFunction>>
      loaded_;
  std::size_t nodes_ = 0;  // of all plans
};

// Ends what a dataset computes, from another thread: its own is waited for at the end.
class FunctionStop {
 public:
  void stop();  // once and for all
  // Around each step, for its thread. False: it is not to begin.
  bool begin(StepState& step);
  void end(StepState& step);

 private:
  std::mutex mutex_;
  std::vector<StepState*> running_;
  bool stopped_ = false;
};

// For one dataset. `step_memory`: bytes that each call may hold; 0: as many as there are.
std::vector<ExampleFunctionPtr> callable(const LoadedFunctions& functions,
                                         const std::shared_ptr<FunctionStop>& stop,
                                         std::uint64_t step_memory);

}  // namespace troupe
