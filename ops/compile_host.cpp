#include "ops/compile_host.hpp"

#include "devices/cpu/cpu_device.hpp"
#include "ops/evaluate.hpp"

namespace troupe {
namespace {

// What is computed ahead of a run, and what it takes on its way, are no more than this: sizes of
// results may be known to their kernels alone, and come from graphs of others. Beyond it nodes are
// left to the run.
constexpr std::size_t kMostMemory = std::size_t{1} << 30;

}  // namespace

CompileHost::CompileHost(const OpTable& table)
    : table_(table),
      kernels_(table.index()),
      fold_device_(make_inline_device(DeviceName{"fold", 0, "CPU", 0}, kMostMemory)) {}

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
