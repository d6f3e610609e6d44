#include "ops/cuda/functions.hpp"

#include <map>
#include <string>

namespace troupe::cuda {
namespace {

// What an attribute may be. Functions depend on types and truth values alone.
std::vector<Attr> values_of(const AttrSpec& spec) {
  if (spec.kind == "type") return {spec.types.begin(), spec.types.end()};
  if (spec.kind == "bool") return {Attr(false), Attr(true)};
  if (spec.fallback) return {*spec.fallback};
  if (spec.kind == "shape") return {Attr(PartialShape::scalar())};
  if (spec.kind == "tensor") return {Attr(Tensor::of(Shape{}, {0.0f}))};
  if (spec.kind == "int") return {Attr(0)};
  if (spec.kind == "float") return {Attr(0.0)};
  if (spec.kind == "string") return {Attr(spec.strings.empty() ? "" : spec.strings.front())};
  if (spec.kind == "list(int)")  // of any length, and of a window
    return {Attr(std::vector<std::int64_t>()), Attr(std::vector<std::int64_t>{1, 1})};
  return {};
}

// Every way to give the attributes of `op`: one node for each.
std::vector<AttrMap> typings(const OpInfo& op) {
  std::vector<AttrMap> all(1);
  for (const AttrSpec& spec : op.attrs) {
    std::vector<AttrMap> more;
    for (const AttrMap& attrs : all)
      for (const Attr& value : values_of(spec)) {
        more.push_back(attrs);
        more.back().emplace(spec.name, value);
      }
    all = std::move(more);
  }
  return all;
}

}  // namespace

std::vector<GpuFunction> all_functions(const OpTable& table) {
  std::map<std::string, GpuFunction> all;
  for (const OpInfo* op : table.ops.all()) {
    if (!table.kernels.find(op->def.name, "CUDA")) continue;
    for (AttrMap& attrs : typings(*op)) {
      NodeDef node{.name = op->def.name, .op = op->def.name};
      node.attrs = std::move(attrs);
      auto kernel = table.kernels.make(node, *op, "CUDA");
      if (!kernel.ok()) continue;  // not of these types
      if (auto* of_gpu = dynamic_cast<GpuKernel*>(kernel->get()))
        for (const GpuFunction& function : of_gpu->functions())
          all.emplace(function.type, function);
    }
  }
  std::vector<GpuFunction> functions;
  for (auto& [type, function] : all) functions.push_back(std::move(function));
  return functions;
}

}  // namespace troupe::cuda
