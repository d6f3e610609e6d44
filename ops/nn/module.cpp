#include "ops/nn/module.hpp"

#include <algorithm>

namespace troupe::nn {

Module::~Module() {
  // Children that are still there, against the rule, belong to the parent now, if there is one.
  for (const auto& item : items_)
    if (Module* const* child = std::get_if<Module*>(&item)) (*child)->parent_ = parent_;
  if (parent_ == nullptr) return;
  auto& items = parent_->items_;
  auto at = std::find_if(items.begin(), items.end(), [&](const auto& item) {
    Module* const* child = std::get_if<Module*>(&item);
    return child != nullptr && *child == this;
  });
  // The children of this one have left their variables here.
  at = items.erase(at);
  items.insert(at, items_.begin(), items_.end());
}

std::vector<Variable> Module::parameters() const {
  std::vector<Variable> all;
  for (const auto& item : items_) {
    if (const Variable* own = std::get_if<Variable>(&item)) {
      all.push_back(*own);
      continue;
    }
    std::vector<Variable> part = std::get<Module*>(item)->parameters();
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
