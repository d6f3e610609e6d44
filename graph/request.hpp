// What compile() is asked for, and what it compiles for.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "core/name.hpp"
#include "core/status.hpp"
#include "core/tensor.hpp"
#include "graph/graph.hpp"
#include "graph/kernel_index.hpp"
#include "graph/op_registry.hpp"

namespace troupe {

// What a client asks of one compiled step. Ports and nodes are named, so that the request can
// travel and be a cache key.
struct CompileRequest {
  std::vector<PortName> feeds;
  std::vector<PortName> fetches;
  std::vector<std::string> targets;
  std::int32_t replicas = 1;  // logical replicas (data parallel copies of the step)
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

}  // namespace troupe
