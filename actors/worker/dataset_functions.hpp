// The functions that the stages of a dataset call, compiled for this process.
#pragma once

#include <memory>
#include <mutex>
#include <vector>

#include "troupe/actors/burst/step_state.hpp"
#include "troupe/graph/graph.hpp"
#include "troupe/ops/compile_host.hpp"
#include "troupe/ops/data/example_function.hpp"

namespace troupe {

// Ends what runs, from another thread: a dataset computes on a thread of its own, which is waited
// for at the end.
class FunctionStop {
 public:
  void stop();  // once and for all
  // Around each step, for its thread. False: it is not to begin.
  bool begin(StepState& step);
  void end();

 private:
  std::mutex mutex_;
  StepState* running_ = nullptr;
  bool stopped_ = false;
};

// Of one dataset. The functions run on devices of their own, on the thread that calls them.
struct DatasetFunctions {
  std::vector<ExampleFunctionPtr> functions;
  // Of all that they compute: two datasets alike but for that are two.
  std::uint64_t hash = 0;
  std::shared_ptr<FunctionStop> stop = std::make_shared<FunctionStop>();
};

// Those that the dataset's node names. not_found for one that the graph lacks, invalid_argument for
// one that wants more than elements, or asks for anything outside of itself; both with the node.
Expected<DatasetFunctions> load_dataset_functions(const GraphDef& graph, const NodeDef& dataset,
                                                  const CompileHost& host, const OpTable& ops);

}  // namespace troupe
