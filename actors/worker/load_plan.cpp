#include "actors/worker/load_plan.hpp"

namespace troupe {

Expected<std::shared_ptr<const LoadedPlan>> load_plan(Plan plan, Device& device,
                                                      const OpTable& ops) {
  return LoadedPlan::make(std::make_shared<const Plan>(std::move(plan)), device,
                          [&](const PlanInfo& node) -> Expected<std::unique_ptr<Kernel>> {
                            TROUPE_TRY(const OpInfo* op, ops.ops.lookup(node.def.op));
                            return ops.kernels.make(node.def, *op, *device.name().type);
                          });
}

}  // namespace troupe
