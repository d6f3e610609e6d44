// Modules: parts of a network that own variables.
#pragma once

#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "troupe/ops/api/variable.hpp"
#include "troupe/ops/graph_api.hpp"

namespace troupe::nn {

// A part of a network: a scope, variables of its own, and parts that register themselves in it.
//
//   struct Mlp : nn::Module {
//     using Module::Module;
//     nn::Linear h{*this, "h", 784, 128}, out{*this, "out", 128, 10};
//     Output operator()(Output x) const { return out(relu(h(x))); }
//   };
//   Mlp net{g.scope("mlp")};
//
// Neither copies nor moves: parents point at children. Variables are made when the module is;
// calling it adds nodes only, so it can be called several times on shared variables.
class Module {
 public:
  explicit Module(Scope scope) : scope_(std::move(scope)) {}
  // A part of `parent`, which must outlive it.
  Module(Module& parent, std::string_view name) : scope_(parent.scope_.scope(name)) {
    parent.items_.emplace_back(this);
  }
  Module(const Module&) = delete;
  Module& operator=(const Module&) = delete;

  GraphBuilder& graph() const { return scope_.graph(); }
  const Scope& scope() const { return scope_; }
  // Variables of the module and its parts, in the order of creation.
  std::vector<Variable> parameters() const;

 protected:
  ~Module() = default;
  // Makes a variable of this module.
  Variable parameter(std::string_view name, Output initial, Site site,
                     const VariableOptions& options = {});
  Variable parameter(std::string_view name, Tensor initial, Site site,
                     const VariableOptions& options = {});

 private:
  Scope scope_;
  std::vector<std::variant<Variable, const Module*>> items_;
};

}  // namespace troupe::nn
