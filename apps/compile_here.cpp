#include "apps/compile_here.hpp"

#include "graph/passes/variable_homes.hpp"
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
    const DeviceType* type = ops::builtin().devices.find(*name.type);
    if (type == nullptr) return not_found("'" + text + "': there is no such type of device");
    target.devices.push_back({name, type->space});
  }
  target.fixed = variable_homes(graph.def(), target, request.replicas > 1);
  return compile(graph.def(), request, target, observer);
}

}  // namespace troupe
