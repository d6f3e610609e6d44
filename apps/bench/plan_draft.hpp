// Plans written by hand, for tests and benchmarks.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "graph/plan.hpp"

namespace troupe {

// Collects nodes in topological order and lays them out as the compiler would: slots, edges,
// counts, roots.
class PlanDraft {
 public:
  explicit PlanDraft(std::string device = "/job:local/task:0/cpu:0");

  struct NodeSpec {
    std::string name;
    Role role = Role::kernel;
    std::vector<std::uint32_t> inputs = {};  // slots
    std::uint16_t outputs = 1;
    std::vector<std::uint32_t> control = {};  // nodes
    std::string op = "Test";
    const External* external = nullptr;  // which outlives the plan; the role is external then
  };
  // Returns the node's index.
  std::uint32_t add(NodeSpec spec);
  // The slot of output `k`.
  std::uint32_t out(std::uint32_t node, std::uint32_t k = 0) const {
    return plan_.nodes[node].first_slot + k;
  }
  // Nodes added from here to end_loop() are the body of the loop that node `loop`, of role loop,
  // stands for; its frame has as many variables as that has outputs. Returns the node that begins
  // an iteration. Loops nest.
  std::uint32_t begin_loop(std::uint32_t loop);
  // The slots of the next predicate and the next values. The iteration ends when all of the body is
  // done.
  void end_loop(std::vector<std::uint32_t> predicate_and_values);
  // The same of a function that calls itself, and that node `call`, of role invoke, calls from
  // outside; in its body another one, of other numbers of arguments and results, that it calls.
  // Returns the node that begins a call.
  std::uint32_t begin_function(std::uint32_t call, std::uint16_t arguments, std::uint16_t results);
  void end_function(std::vector<std::uint32_t> results);
  // A node of role invoke calls the function that `body` begins.
  void calls(std::uint32_t node, std::uint32_t body) {
    plan_.info[node].calls = plan_.nodes[body].frame;
  }
  void feed(std::uint32_t slot);
  void fetch(std::uint32_t slot);
  std::uint32_t resource(ResourceRef ref);
  PlanNode& node(std::uint32_t node) { return plan_.nodes[node]; }
  PlanInfo& info(std::uint32_t node) { return plan_.info[node]; }
  PlanSlot& slot(std::uint32_t slot) { return plan_.slots[slot]; }

  Plan finish();

 private:
  std::uint32_t begin_frame(PlanFrame frame, const std::string& name, Role role,
                            std::uint32_t outputs);
  void end_frame(Role role, std::vector<std::uint32_t> inputs);

  Plan plan_;
  std::vector<std::uint32_t> producers_;  // per slot
  std::vector<std::vector<std::uint32_t>> control_;
  std::vector<PlanFrame> frames_ = std::vector<PlanFrame>(1);
  std::uint32_t frame_ = 0;  // of the nodes that are added now
};

}  // namespace troupe
