#include "ops/cuda/functions.hpp"

#include <set>

#include "devices/cuda/gpu_kernel.hpp"

namespace troupe::cuda {
namespace {

// Every way to give the attributes of `op` that are types: one node for each.
std::vector<AttrMap> typings(const OpInfo& op) {
  std::vector<AttrMap> all(1);
  for (const AttrSpec& spec : op.attrs) {
    std::vector<AttrMap> more;
    for (const AttrMap& attrs : all) {
      if (spec.kind != "type") {
        more.push_back(attrs);
        if (spec.fallback) more.back().emplace(spec.name, *spec.fallback);
        continue;
      }
      for (DType type : spec.types) {
        more.push_back(attrs);
        more.back().emplace(spec.name, Attr(type));
      }
    }
    all = std::move(more);
  }
  return all;
}

}  // namespace

std::vector<std::string> all_functions(const OpTable& table) {
  std::set<std::string> types;
  for (const OpInfo* op : table.ops.all()) {
    if (!table.kernels.find(op->def.name, "CUDA")) continue;
    for (AttrMap& attrs : typings(*op)) {
      NodeDef node{.name = op->def.name, .op = op->def.name};
      node.attrs = std::move(attrs);
      auto kernel = table.kernels.make(node, *op, "CUDA");
      if (!kernel.ok()) continue;  // not of these types
      if (auto* of_gpu = dynamic_cast<GpuKernel*>(kernel->get()))
        for (const GpuFunction& function : of_gpu->functions()) types.insert(function.type);
    }
  }
  return {types.begin(), types.end()};
}

}  // namespace troupe::cuda
