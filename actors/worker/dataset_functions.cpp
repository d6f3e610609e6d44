#include "actors/worker/dataset_functions.hpp"

#include <optional>
#include <set>

#include "actors/worker/load_plan.hpp"
#include "core/hash.hpp"
#include "devices/cpu/cpu_device.hpp"
#include "graph/compile.hpp"
#include "graph/control/functions/ops.hpp"
#include "graph/import.hpp"
#include "graph/node_hash.hpp"
#include "graph/node_query.hpp"
#include "ops/data/dataset.hpp"

namespace troupe {
namespace {

// Limit for all functions of a graph. Calls are inlined, so a small graph can become a large plan.
constexpr std::size_t kMostNodes = std::size_t{1} << 22;

const DeviceName& device_name() {
  static const DeviceName name{"dataset", 0, "CPU", 0};
  return name;
}

Status no_longer_read() { return cancelled("the dataset is no longer read"); }

class NoOutbox final : public StepOutbox {
 public:
  void send(ChannelId, const Tag&, Tensor, bool) override {}
};

class CallableFunction final : public ExampleFunction {
 public:
  CallableFunction(std::shared_ptr<const LoadedFunction> function,
                   std::shared_ptr<FunctionStop> stop, std::uint64_t step_memory)
      : function_(std::move(function)), stop_(std::move(stop)), step_memory_(step_memory) {}

  const Signature& arguments() const override { return function_->arguments; }
  const Signature& results() const override { return function_->results; }

  Expected<std::vector<Tensor>> call(std::vector<Tensor> values, std::uint64_t draw) override try {
    if (!step_) step_.emplace(function_->program);
    StepInput input{.run = draw};
    if (step_memory_ > 0) input.memory = std::make_shared<StepMemory>(step_memory_);
    for (const PlanFeed& feed : function_->program->plan().feeds)
      input.feeds.push_back(values[feed.feed]);
    TROUPE_TRY(step_->start(std::move(input), outbox_));
    if (!stop_->begin(*step_)) step_->abort(no_longer_read());
    // Nothing arrives from outside, so an unfinished step has work left.
    InlineLanes lanes;
    for (BurstResult burst; !(burst = step_->run(lanes)).finished;)
      if (!burst.more && !step_->has_arrivals())
        step_->abort(internal_error("a function of a dataset waits for what never comes"));
    stop_->end(*step_);
    StepResult result = step_->result();
    TROUPE_TRY(std::move(result.status));
    std::vector<Tensor> results(function_->results.size());
    for (Fetched& fetched : result.fetches) results[fetched.index] = std::move(fetched.value);
    if (fits(function_->results, results)) return results;
    return internal_error("a function of a dataset returned other values than it says");
  } catch (...) {
    // For example, no memory: the step is unfinished and cannot be used again.
    if (step_) stop_->end(*step_);
    step_.reset();
    throw;
  }
  ExampleFunctionPtr another() const override {
    return std::make_shared<CallableFunction>(function_, stop_, step_memory_);
  }

 private:
  const std::shared_ptr<const LoadedFunction> function_;
  const std::shared_ptr<FunctionStop> stop_;
  const std::uint64_t step_memory_;
  NoOutbox outbox_;
  std::optional<StepState> step_;
};

Status check_arguments(const FunctionDef& f, const OpRegistry& ops) {
  for (NodeId id : f.arguments) {
    const NodeDef& node = f.nodes[id];
    if (role_of(node, ops) != Role::argument || dtype_size(node.out_types[0]) == 0)
      return in_node(invalid_argument("a function of a dataset is given elements alone"), node);
  }
  return ok_status();
}

Status check_plan(const Plan& plan) {
  for (const PlanInfo& info : plan.info)
    if (info.external)
      return in_node(invalid_argument("a function of a dataset asks for nothing outside of it"),
                     info.def);
  return ok_status();
}

struct Program {
  GraphDef graph;
  CompileRequest request;
};

// A graph with one call of the function, all arguments fed and all results fetched. The call has
// the function's name, so that different functions draw different random numbers.
Program program_of(const FunctionDef& f, std::vector<FunctionDef> functions, std::uint64_t seed) {
  Program out;
  out.graph.seed = seed;
  for (FunctionDef& each : functions)
    for (NodeDef& node : each.nodes) node.device.clear();
  out.graph.functions = std::move(functions);
  const std::string prefix = f.name.starts_with("element_") ? "argument_" : "element_";
  NodeDef call;
  call.name = f.name;
  call.op = "Call";
  call.attrs = {{"function", f.name}};
  call.site = f.site;
  for (NodeId id : f.arguments) {
    const NodeDef& argument = f.nodes[id];
    NodeDef element;
    element.name = prefix + std::to_string(call.inputs.size());
    element.op = "Placeholder";
    element.attrs = {{"T", argument.out_types[0]}, {"shape", argument.out_shapes[0]}};
    element.site = f.site;
    call.inputs.push_back({NodeId(out.graph.nodes.size()), 0});
    out.request.feeds.push_back({element.name, 0});
    out.graph.nodes.push_back(std::move(element));
  }
  for (std::size_t i = 0; i < f.results.size(); ++i)
    out.request.fetches.push_back({f.name, int(i)});
  out.graph.nodes.push_back(std::move(call));
  return out;
}

Expected<Plan> compile_alone(Program program, Target target, const OpTable& ops) {
  TROUPE_TRY(const GraphDef graph, import_graph(std::move(program.graph), ops.ops));
  target.devices = {{device_name(), MemorySpace::host}};
  target.fixed.clear();
  TROUPE_TRY(CompiledGraph compiled, compile(graph, program.request, target));
  if (compiled.plans.size() != 1)
    return internal_error("a function of a dataset became " +
                          std::to_string(compiled.plans.size()) + " partitions");
  TROUPE_TRY(check_plan(compiled.plans[0]));
  return std::move(compiled.plans[0]);
}

}  // namespace

const FunctionDef* FunctionLoader::find(const GraphDef& graph, const std::string& name) {
  for (; indexed_ < graph.functions.size(); ++indexed_)
    positions_.emplace(graph.functions[indexed_].name, indexed_);
  const auto at = positions_.find(name);
  return at == positions_.end() ? nullptr : &graph.functions[at->second];
}

// The function and all that it calls.
std::vector<FunctionDef> FunctionLoader::with_callees(const GraphDef& graph, const FunctionDef& f,
                                                      const OpRegistry& ops) {
  std::vector<const FunctionDef*> found = {&f};
  std::set<std::string> known = {f.name};
  for (std::size_t i = 0; i < found.size(); ++i)
    for (const NodeDef& node : found[i]->nodes) {
      if (role_of(node, ops) != Role::call) continue;
      for (const std::string& name : functions_of(node))
        if (known.insert(name).second)
          if (const FunctionDef* called = find(graph, name)) found.push_back(called);
    }
  std::vector<FunctionDef> out;
  for (const FunctionDef* each : found) out.push_back(*each);
  return out;
}

Expected<std::shared_ptr<const LoadedFunction>> FunctionLoader::load(const GraphDef& graph,
                                                                     const FunctionDef& f,
                                                                     const Target& target,
                                                                     const OpTable& ops) {
  auto& known = loaded_[{f.name, target.disabled}];
  if (known) return known;
  if (target.stopped && target.stopped()) return cancelled("the compile was stopped");
  TROUPE_TRY(check_arguments(f, ops.ops));
  auto made = std::make_shared<LoadedFunction>();
  for (NodeId id : f.arguments)
    made->arguments.push_back({f.nodes[id].out_types[0], f.nodes[id].out_shapes[0]});
  for (std::size_t i = 0; i < f.results.size(); ++i)
    made->results.push_back({f.result_types[i], f.result_shapes[i]});
  std::vector<FunctionDef> functions = with_callees(graph, f, ops.ops);
  made->hash = mix64(graph.seed);
  for (const FunctionDef& each : functions) made->hash = hash_functions(made->hash, each);
  TROUPE_TRY(Plan plan,
             compile_alone(program_of(f, std::move(functions), graph.seed), target, ops));
  nodes_ += plan.nodes.size();
  if (nodes_ > kMostNodes)
    return resource_exhausted("functions of datasets of more than " + std::to_string(kMostNodes) +
                              " nodes");
  made->device = make_inline_device(device_name());
  TROUPE_TRY(made->program, load_plan(std::move(plan), *made->device, ops));
  known = std::move(made);
  return known;
}

Expected<LoadedFunctions> FunctionLoader::load(const GraphDef& graph, const NodeDef& dataset,
                                               const Target& target, const OpTable& ops) {
  LoadedFunctions out;
  for (const std::string& name : functions_of_dataset(dataset)) {
    const FunctionDef* f = find(graph, name);
    if (!f) return in_node(not_found("there is no function '" + name + "'"), dataset);
    auto loaded = load(graph, *f, target, ops);
    if (!loaded.ok()) return in_node(loaded.status().in("in function '" + name + "'"), dataset);
    out.push_back(std::move(*loaded));
  }
  return out;
}

void FunctionStop::stop() {
  const std::lock_guard lock(mutex_);
  stopped_ = true;
  for (StepState* step : running_) step->abort(no_longer_read());
}

bool FunctionStop::begin(StepState& step) {
  const std::lock_guard lock(mutex_);
  if (!stopped_) running_.push_back(&step);
  return !stopped_;
}

void FunctionStop::end(StepState& step) {
  const std::lock_guard lock(mutex_);
  std::erase(running_, &step);
}

std::vector<ExampleFunctionPtr> callable(const LoadedFunctions& functions,
                                         const std::shared_ptr<FunctionStop>& stop,
                                         std::uint64_t step_memory) {
  std::vector<ExampleFunctionPtr> out;
  for (const auto& function : functions)
    out.push_back(std::make_shared<CallableFunction>(function, stop, step_memory));
  return out;
}

}  // namespace troupe
