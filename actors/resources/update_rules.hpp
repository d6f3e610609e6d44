// Update rules: how variable containers apply write ops. No actors in here.
#pragma once

#include <memory>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "actors/resources/device_join.hpp"
#include "actors/resources/variable_store.hpp"
#include "devices/device.hpp"
#include "ops/op.hpp"

namespace troupe {

// A rule with its kernel; made when a step is loaded.
struct RuleWithKernel : UpdateRule {
  const OpInfo* op_info = nullptr;
  std::shared_ptr<Kernel> kernel;
  // By operand: whether `combine` joins it over replicas; otherwise that of replica 0 is used.
  std::vector<bool> reduced;
  std::shared_ptr<const DeviceJoin> join;  // of several replicas on a device with its own memory
};

// The rule of a write node on that device. `targets` are the variables of its handles, in order.
// Prepares the device. Errors: those of KernelRegistry::make and Device::prepare.
Expected<std::shared_ptr<const UpdateRule>> make_rule(const OpTable& ops, const NodeDef& node,
                                                      std::vector<std::string> targets,
                                                      Device& device);

// Checks writes with the op's shape function and the current shapes of its variables. Memory comes
// from the device that holds the variables, which outlives the rules.
class OpRules final : public UpdateRules {
 public:
  explicit OpRules(Device& device, const OpTable& ops = ops::builtin())
      : device_(device), ops_(ops) {}

  Expected<std::vector<Tensor>> reserve(std::span<const VariableMeta> variables,
                                        std::vector<WriteReduction>& reductions) const override;
  Status check(const LoggedWrite& write, std::span<VariableMeta> targets) const override;
  // As make_rule() for a node with that op and those attributes.
  Expected<std::shared_ptr<const UpdateRule>> make(const UpdateRule& value) const override;

 private:
  Device& device_;
  const OpTable& ops_;
};

// Joins contributions on a lane of their device; returns the operands of all writes, one write
// after the other. The result reuses the memory of the first contribution if nobody else holds it.
Expected<std::vector<Tensor>> join_contributions(VariableStore::Join join, Device& device,
                                                 Lanes& lanes);

// Runs a task on a lane of its device: joins the remaining contributions and applies the rules in
// order; in place if the task and the reference counts allow it, else in the reserved memory. On an
// asynchronous device the values are done when device.stream().last() is complete.
Expected<std::vector<Tensor>> apply_task(VariableStore::Task task, Device& device, Lanes& lanes);

}  // namespace troupe
