#include "ops/compile_host.hpp"

#include "devices/cpu/cpu_device.hpp"
#include "ops/evaluate.hpp"

namespace troupe {

CompileHost::CompileHost(const OpTable& table)
    : table_(table),
      kernels_(table.index()),
      fold_device_(make_inline_device(DeviceName{"fold", 0, "CPU", 0})) {}

Target CompileHost::target() const {
  Target target;
  complete(target);
  return target;
}

void CompileHost::complete(Target& target) const {
  target.ops = &table_.ops;
  target.kernels = kernels_.get();
  target.passes = table_.passes;
  target.evaluate = [this](const NodeDef& node, const std::vector<Tensor>& inputs) {
    return evaluate(table_, node, inputs, *fold_device_);
  };
}

}  // namespace troupe
