#include "troupe/actors/worker/dataset_functions.hpp"

#include <algorithm>
#include <set>

#include "troupe/core/hash.hpp"
#include "troupe/devices/cpu/cpu_device.hpp"
#include "troupe/graph/control/ops.hpp"
#include "troupe/graph/node_hash.hpp"
#include "troupe/graph/passes/pass.hpp"
#include "troupe/ops/data/dataset.hpp"

namespace troupe {

namespace {

Status no_longer_read() { return cancelled("the dataset is no longer read"); }

}  // namespace

void FunctionStop::stop() {
  const std::lock_guard lock(mutex_);
  stopped_ = true;
  if (running_) running_->abort(no_longer_read());
}

bool FunctionStop::begin(StepState& step) {
  const std::lock_guard lock(mutex_);
  if (!stopped_) running_ = &step;
  return !stopped_;
}

void FunctionStop::end() {
  const std::lock_guard lock(mutex_);
  running_ = nullptr;
}

namespace {

constexpr char kDevice[] = "dataset";

class NoOutbox final : public StepOutbox {
 public:
  void send(ChannelId, const Tag&, Tensor, bool) override {}
};

class CompiledFunction final : public ExampleFunction {
 public:
  CompiledFunction(const FunctionDef& f, std::unique_ptr<Device> device,
                   std::shared_ptr<const LoadedPlan> program, std::shared_ptr<FunctionStop> stop)
      : device_(std::move(device)), step_(std::move(program)), stop_(std::move(stop)) {
    for (NodeId id : f.arguments)
      arguments_.push_back({f.nodes[id].out_types[0], f.nodes[id].out_shapes[0]});
    for (std::size_t i = 0; i < f.results.size(); ++i)
      results_.push_back({f.result_types[i], f.result_shapes[i]});
  }

  const Signature& arguments() const override { return arguments_; }
  const Signature& results() const override { return results_; }

  Expected<std::vector<Tensor>> call(std::vector<Tensor> values, std::uint64_t draw) override {
    StepInput input{.run = draw};
    for (const PlanFeed& feed : step_.program().plan().feeds)
      input.feeds.push_back(values[feed.feed]);
    TROUPE_TRY(step_.start(std::move(input), outbox_));
    if (!stop_->begin(step_)) step_.abort(no_longer_read());
    // Nothing comes from outside, so what is not over has work left.
    InlineLanes lanes;
    for (BurstResult burst; !(burst = step_.run(lanes)).finished;)
      if (!burst.more && !step_.has_arrivals())
        step_.abort(internal_error("a function of a dataset waits for what never comes"));
    stop_->end();
    StepResult result = step_.result();
    TROUPE_TRY(std::move(result.status));
    std::vector<Tensor> results(results_.size());
    for (Fetched& fetched : result.fetches) results[fetched.index] = std::move(fetched.value);
    if (fits(results_, results)) return results;
    return internal_error("a function returned other values than it says");
  }

 private:
  Signature arguments_, results_;
  NoOutbox outbox_;
  std::unique_ptr<Device> device_;
  StepState step_;
  std::shared_ptr<FunctionStop> stop_;
};

// It and all that it calls.
std::vector<FunctionDef> with_callees(const FunctionDef& f, const GraphDef& graph,
                                      const OpRegistry& ops) {
  std::vector<const FunctionDef*> found = {&f};
  std::set<std::string> known = {f.name};
  for (std::size_t i = 0; i < found.size(); ++i)
    for (const NodeDef& node : found[i]->nodes) {
      if (role_of(node, ops) != Role::call) continue;
      for (const std::string& name : functions_of(node))
        if (const FunctionDef* called = graph.function(name); called && known.insert(name).second)
          found.push_back(called);
    }
  std::vector<FunctionDef> out;
  for (const FunctionDef* each : found) out.push_back(*each);
  return out;
}

Status check_arguments(const FunctionDef& f, const OpRegistry& ops) {
  for (NodeId id : f.arguments) {
    const NodeDef& node = f.nodes[id];
    if (role_of(node, ops) != Role::argument || dtype_size(node.out_types[0]) == 0)
      return in_node(invalid_argument("a function of a dataset is given elements alone"), node);
  }
  return ok_status();
}

struct Program {
  GraphDef graph;
  CompileRequest request;
};

// A call of it alone, of which everything is fed and fetched. The call has its name: what is drawn
// in two functions has keys of its own in each.
Program program_of(const FunctionDef& f, std::vector<FunctionDef> functions, std::uint64_t seed) {
  Program out;
  out.graph.seed = seed;
  out.graph.functions = std::move(functions);
  NodeDef call;
  call.name = f.name;
  call.op = "Call";
  call.attrs = {{"function", f.name}};
  call.site = f.site;
  for (NodeId id : f.arguments) {
    const NodeDef& argument = f.nodes[id];
    NodeDef element;
    element.name = f.name + "/element_" + std::to_string(call.inputs.size());
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

Status check_plan(const Plan& plan) {
  for (const PlanInfo& info : plan.info)
    if (info.external)
      return in_node(invalid_argument("a function of a dataset asks for nothing outside of it"),
                     info.def);
  return ok_status();
}

Expected<ExampleFunctionPtr> load(const FunctionDef& f, Program program, const CompileHost& host,
                                  const OpTable& ops, const std::shared_ptr<FunctionStop>& stop) {
  TROUPE_TRY(check_arguments(f, ops.ops));
  TROUPE_TRY(const GraphDef graph, import_graph(std::move(program.graph), ops.ops));
  const DeviceName name{kDevice, 0, "CPU", 0};
  Target target = host.target();
  target.devices = {{name, MemorySpace::host}};
  TROUPE_TRY(CompiledGraph compiled, compile(graph, program.request, target));
  if (compiled.plans.size() != 1)
    return internal_error("a function of a dataset became " +
                          std::to_string(compiled.plans.size()) + " partitions");
  TROUPE_TRY(check_plan(compiled.plans[0]));
  std::unique_ptr<Device> device = make_inline_device(name);
  TROUPE_TRY(auto loaded,
             LoadedPlan::make(std::make_shared<const Plan>(std::move(compiled.plans[0])), *device,
                              [&](const PlanInfo& node) -> Expected<std::unique_ptr<Kernel>> {
                                TROUPE_TRY(const OpInfo* op, ops.ops.lookup(node.def.op));
                                return ops.kernels.make(node.def, *op, *name.type);
                              }));
  return ExampleFunctionPtr(
      std::make_shared<CompiledFunction>(f, std::move(device), std::move(loaded), stop));
}

}  // namespace

Expected<DatasetFunctions> load_dataset_functions(const GraphDef& graph, const NodeDef& dataset,
                                                  const CompileHost& host, const OpTable& ops) {
  DatasetFunctions out;
  for (const std::string& name : functions_of_dataset(dataset)) {
    const FunctionDef* f = graph.function(name);
    if (!f) return in_node(not_found("there is no function '" + name + "'"), dataset);
    std::vector<FunctionDef> functions = with_callees(*f, graph, ops.ops);
    out.hash = hash_combine(out.hash, graph.seed);
    for (const FunctionDef& each : functions) out.hash = hash_functions(out.hash, each);
    auto loaded = load(*f, program_of(*f, std::move(functions), graph.seed), host, ops, out.stop);
    if (!loaded.ok()) return loaded.status().in("in function '" + name + "'");
    out.functions.push_back(std::move(*loaded));
  }
  return out;
}

}  // namespace troupe
