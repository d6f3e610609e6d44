// Update rules: write ops as variable containers apply them. No actors in here.
#pragma once

#include <memory>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "actors/resources/variable_store.hpp"
#include "devices/device.hpp"
#include "ops/op.hpp"

namespace troupe {

// A rule with its kernel, made when a step is loaded.
struct RuleWithKernel : UpdateRule {
  const OpInfo* op_info = nullptr;
  std::shared_ptr<Kernel> kernel;
  // Operands that the rule's `combine` joins over replicas; of the others replica 0's is taken.
  std::vector<bool> reduced;
};

// The rule of a write node on that device. `targets` are the variables of its handles, in order.
// Errors: what KernelRegistry::make says; unimplemented for replicas on a device whose memory the
// host cannot read.
Expected<std::shared_ptr<const UpdateRule>> make_rule(const OpTable& ops, const NodeDef& node,
                                                      std::vector<std::string> targets,
                                                      const Device& device);

// Checks a write by the op's shape function, with the shapes that its variables have by then.
// Memory is of the device that holds the variables, which outlives the rules.
class OpRules final : public UpdateRules {
 public:
  explicit OpRules(Device& device, const OpTable& ops = ops::builtin())
      : device_(device), ops_(ops) {}

  Expected<std::vector<Tensor>> reserve(std::span<const VariableMeta> variables,
                                        std::vector<WriteReduction>& reductions) const override;
  Status check(const LoggedWrite& write, std::span<VariableMeta> targets) const override;
  // What make_rule() makes of a node of that op with those attributes.
  Expected<std::shared_ptr<const UpdateRule>> make(const UpdateRule& value) const override;

 private:
  Device& device_;
  const OpTable& ops_;
};

// Joins contributions on a lane of their device: the operands of all writes, one write after the
// other. Where the first contribution is nobody else's, the result takes its memory.
Expected<std::vector<Tensor>> join_contributions(VariableStore::Join join, Device& device,
                                                 Lanes& lanes);

// Runs a task on a lane of its device: joins the contributions that are apart, applies the rules in
// order, in place where the task and the reference counts allow, else in the room that was
// reserved. On an asynchronous device the values are there when device.stream().last() is complete.
Expected<std::vector<Tensor>> apply_task(VariableStore::Task task, Device& device, Lanes& lanes);

}  // namespace troupe
