// Plans written by hand, for tests and benchmarks.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "troupe/graph/plan.hpp"

namespace troupe {

// Collects nodes in topological order and lays them out as the compiler would: slots, edges,
// counts, roots. One frame.
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
  void feed(std::uint32_t slot);
  void fetch(std::uint32_t slot);
  std::uint32_t resource(ResourceRef ref);
  PlanNode& node(std::uint32_t node) { return plan_.nodes[node]; }
  PlanInfo& info(std::uint32_t node) { return plan_.info[node]; }
  PlanSlot& slot(std::uint32_t slot) { return plan_.slots[slot]; }

  Plan finish();

 private:
  Plan plan_;
  std::vector<std::uint32_t> producers_;  // per slot
  std::vector<std::vector<std::uint32_t>> control_;
};

}  // namespace troupe
