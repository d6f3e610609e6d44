// From a graph and a request to plans: the compile path, one pure function. Read this first.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/status.hpp"
#include "graph/op_registry.hpp"
#include "graph/plan.hpp"

namespace troupe {

// What a client asks of one compiled step. Ports and nodes are named, so that the request can
// travel and be a cache key.
struct CompileRequest {
  std::vector<PortName> feeds;
  std::vector<PortName> fetches;
  std::vector<std::string> targets;
  std::int32_t replicas = 1;  // logical replicas (data parallel copies of the step)
};

// Which ops have kernels on which device types, for which dtypes, and which types come first. A
// table, so that this floor needs neither kernels nor devices.
class KernelIndex {
 public:
  void add(std::string op, std::string device_type, std::vector<DType> types);
  // Placement takes devices of a lower rank first. A type that nothing is said of comes last.
  void rank(std::string device_type, int rank) { ranks_[std::move(device_type)] = rank; }
  int rank(std::string_view device_type) const;
  bool has(std::string_view op, std::string_view device_type, DType type) const;
  std::vector<std::string> devices_of(std::string_view op) const;

 private:
  std::map<std::pair<std::string, std::string>, std::vector<DType>> table_;
  std::map<std::string, int, std::less<>> ranks_;
};

struct TargetDevice {
  DeviceName name;                        // full
  MemorySpace space = MemorySpace::host;  // FAKE and CUDA: device
};

struct StepGraph;  // graph/passes/pass.hpp
struct Target;

// A pass that a program adds to those of compile.cpp (OpTable::add_pass). All processes of a job
// have the same ones, or they would compile different plans.
struct PassDef {
  std::string name;
  // The stage it follows, one of stage_names(), also where that is switched off. After "cse",
  // "sweep" tidies up.
  std::string after = "cse";
  Status (*run)(StepGraph& step, const Target& target) = nullptr;
};
// The stages of compile() that work on a StepGraph, in order.
std::vector<std::string> stage_names();

// What is compiled for.
struct Target {
  std::vector<TargetDevice> devices;
  const OpRegistry* ops = nullptr;
  const KernelIndex* kernels = nullptr;
  // Runs one node on constant inputs, on the host; for constant folding. Empty: no folding.
  std::function<Expected<std::vector<Tensor>>(const NodeDef&, const std::vector<Tensor>&)> evaluate;
  // Asked between the stages, and between nodes that are folded: true ends the compile with
  // `cancelled`. Empty: it goes on to its end.
  std::function<bool()> stopped;
  bool soft_placement = true;
  // Devices chosen by an earlier compile for resources, by resource_key(): they stay, as their
  // state does.
  std::map<std::string, DeviceName> fixed;
  std::vector<PassDef> passes;  // of the program, in the order of their adding
  // Passes switched off by name ("cse", "fold", one of `passes`), for bisecting and tests. Each
  // alone: those that follow it run at their place.
  std::vector<std::string> disabled;
};

// Called after each stage with its name and a printable graph; for `troupe graph` and dumps.
using StageObserver = std::function<void(std::string_view stage, const GraphDef&)>;

// check -> feeds and fetches -> prune -> raise -> state -> lower -> fold -> cse -> prune -> order
// of writes -> replicate -> place -> spread -> partition -> plan; compile.cpp lists them. Errors
// name the node and the line that created it.
Expected<CompiledGraph> compile(const GraphDef& graph, const CompileRequest& request,
                                const Target& target, const StageObserver& observer = {});

// Checks a graph that came from outside (the wire, a file): names, ops, attributes, inputs, types,
// cycles; fills in types, shapes and defaults. Errors name the node. The result is what a builder
// would have made.
Expected<GraphDef> import_graph(GraphDef graph, const OpRegistry& registry);

}  // namespace troupe
