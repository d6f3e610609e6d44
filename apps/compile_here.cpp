#include "apps/compile_here.hpp"

#include "devices/cpu/cpu_device.hpp"
#include "ops/evaluate.hpp"

namespace troupe {

Expected<CompiledGraph> compile_here(const Graph& graph, const CompileRequest& request,
                                     const std::vector<std::string>& devices,
                                     const StageObserver& observer) {
  const OpTable& table = ops::builtin();
  KernelIndex kernels = table.kernels.index();
  auto folding = make_inline_device(DeviceName{"fold", 0, "CPU", 0});
  Target target;
  target.ops = &table.ops;
  target.kernels = &kernels;
  target.evaluate = [&](const NodeDef& node, const std::vector<Tensor>& inputs) {
    return evaluate(table, node, inputs, *folding);
  };
  for (const std::string& text : devices) {
    TROUPE_TRY(DeviceName name, DeviceName::parse(text));
    if (!name.full())
      return invalid_argument("'" + text +
                              "' is not the full name of a device, such as "
                              "/job:worker/task:0/cpu:0");
    MemorySpace space = *name.type == "CPU" ? MemorySpace::host : MemorySpace::device;
    target.devices.push_back({name, space});
  }
  return compile(graph.def(), request, target, observer);
}

}  // namespace troupe
