#include "apps/compile_here.hpp"

#include "ops/compile_host.hpp"

namespace troupe {

Expected<CompiledGraph> compile_here(const Graph& graph, const CompileRequest& request,
                                     const std::vector<std::string>& devices,
                                     const StageObserver& observer) {
  CompileHost host(ops::builtin());
  Target target = host.target();
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
