#include "ops/nn/module.hpp"

namespace troupe::nn {

std::vector<Variable> Module::parameters() const {
  std::vector<Variable> all;
  for (const auto& item : items_) {
    if (const Variable* own = std::get_if<Variable>(&item)) {
      all.push_back(*own);
      continue;
    }
    std::vector<Variable> part = std::get<const Module*>(item)->parameters();
    all.insert(all.end(), part.begin(), part.end());
  }
  return all;
}

Variable Module::parameter(std::string_view name, Output initial, Site site,
                           const VariableOptions& options) {
  auto inside = scope_.enter();
  Variable v = variable(graph(), name, initial, options, std::move(site));
  items_.emplace_back(v);
  return v;
}

Variable Module::parameter(std::string_view name, Tensor initial, Site site,
                           const VariableOptions& options) {
  auto inside = scope_.enter();
  Variable v = variable(graph(), name, std::move(initial), options, std::move(site));
  items_.emplace_back(v);
  return v;
}

}  // namespace troupe::nn
