// Toy ops on f32 scalars, a way to write graphs of them down, and two ways to run them: plans, one
// node at a time in a random order, and the graph as the client wrote it.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "core/hash.hpp"
#include "graph/compile.hpp"

namespace troupe::toy {

// Devices of two processes.
inline constexpr const char* kCpu = "/job:w/task:0/cpu:0";
inline constexpr const char* kFake = "/job:w/task:0/fake:0";
inline constexpr const char* kCpu1 = "/job:w/task:1/cpu:0";

const OpRegistry& ops();
// Kernels for every toy op on each of these device types, which are preferred in this order.
KernelIndex kernels_for(std::initializer_list<const char*> types);

bool is_handle_op(std::string_view op);

struct NodeOptions {
  std::vector<NodeId> control = {};
  std::string device = {};
  std::vector<std::string> colocate = {};
  AttrMap attrs = {};
};

// A graph written down node by node; unknown to it are checks, so that wrong graphs can be made.
class Maker {
 public:
  Port add(std::string op, std::string name, std::vector<Port> inputs = {},
           NodeOptions options = {});
  NodeId node(std::string op, std::string name, std::vector<Port> inputs = {},
              NodeOptions options = {}) {
    return add(std::move(op), std::move(name), std::move(inputs), std::move(options)).node;
  }
  Port constant(std::string name, float value, NodeOptions options = {});
  Port variable(std::string name, NodeOptions options = {});
  const std::string& name(Port p) const { return def.nodes[p.node].name; }
  GraphDef def;
};

Target target(std::initializer_list<const char*> devices, const KernelIndex* kernels = nullptr);
CompileRequest request(std::vector<std::string> fetches, std::vector<std::string> targets = {},
                       std::vector<std::string> feeds = {});

// What a run leaves: fetches in order, and each variable's values after 0, 1, ... writes.
struct Outcome {
  std::vector<float> fetches;
  std::map<std::string, std::vector<float>> variables;
  std::size_t executed = 0;
};

// Runs all plans together, choosing among the ready nodes with `random`; doctest-checks that each
// node runs once, that each channel carries one tensor, and that tensors are where readers expect
// them.
Outcome run_plans(const CompiledGraph& compiled, const std::vector<float>& feeds, Random& random);

// The slow obvious version: the graph in node order, without any pass. Feeds by "node:port" text.
Outcome run_graph(const GraphDef& graph, const CompileRequest& request,
                  const std::vector<float>& feeds);

// Values of one kernel node; `key` is what a random op draws from.
std::vector<float> compute(const NodeDef& node, const std::vector<float>& inputs,
                           std::uint64_t key);
// Target::evaluate over `compute`.
Expected<std::vector<Tensor>> evaluate(const NodeDef& node, const std::vector<Tensor>& inputs);

// Index of the node of that name in any plan, with its plan; fails the test when there is none.
struct Found {
  const Plan* plan = nullptr;
  std::uint32_t node = 0;
  const PlanInfo& info() const { return plan->info[node]; }
};
Found find(const CompiledGraph& compiled, std::string_view name);
std::size_t count_op(const CompiledGraph& compiled, std::string_view op);

}  // namespace troupe::toy
