// Graph functions called by dataset stages, compiled for this process.
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

// One compiled function. Immutable: any number of datasets call it, each with its own step. Its
// device has no threads: it computes on the caller's.
struct LoadedFunction {
  Signature arguments, results;
  std::uint64_t hash = 0;  // of its computation
  std::shared_ptr<Device> device;
  std::shared_ptr<const LoadedPlan> program;
};
using LoadedFunctions = std::vector<std::shared_ptr<const LoadedFunction>>;

// Loads the functions of one graph, each once. Owned by the compile thread.
class FunctionLoader {
 public:
  // The functions that the dataset's node names, in order. `target` is that of the step that reads
  // the dataset; the functions run on the CPU, whatever devices their nodes name. not_found for an
  // unknown function, invalid_argument for one with arguments other than elements or with nodes
  // that use resources, resource_exhausted if all of them together are too large. REQUIRES: earlier
  // calls were for the same graph, which has only grown.
  Expected<LoadedFunctions> load(const GraphDef& graph, const NodeDef& dataset,
                                 const Target& target, const OpTable& ops);

 private:
  const FunctionDef* find(const GraphDef& graph, const std::string& name);
  std::vector<FunctionDef> with_callees(const GraphDef& graph, const FunctionDef& f,
                                        const OpRegistry& ops);
  Expected<std::shared_ptr<const LoadedFunction>> load(const GraphDef& graph, const FunctionDef& f,
                                                       const Target& target, const OpTable& ops);

  std::unordered_map<std::string, std::size_t> positions_;  // in the graph, by name
  std::size_t indexed_ = 0;                                 // functions in positions_
  // By name and disabled passes.
  std::map<std::pair<std::string, std::vector<std::string>>, std::shared_ptr<const LoadedFunction>>
      loaded_;
  std::size_t nodes_ = 0;  // of all plans
};

// Ends a dataset's computations from another thread, which then waits for the dataset's own.
class FunctionStop {
 public:
  void stop();  // for good
  // Called by the step's thread before and after each step. begin() is false if it must not begin.
  bool begin(StepState& step);
  void end(StepState& step);

 private:
  std::mutex mutex_;
  std::vector<StepState*> running_;
  bool stopped_ = false;
};

// The functions for one dataset. `step_memory`: the memory limit of each call in bytes; 0: none.
std::vector<ExampleFunctionPtr> callable(const LoadedFunctions& functions,
                                         const std::shared_ptr<FunctionStop>& stop,
                                         std::uint64_t step_memory);

}  // namespace troupe
