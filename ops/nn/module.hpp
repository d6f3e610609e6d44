// Modules: building blocks of networks that own variables.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "ops/api/variable.hpp"
#include "ops/graph_api.hpp"

namespace troupe::nn {

// A building block of a network: a scope, its own variables, and child modules, which register
// themselves with their parent.
//
//   struct Mlp : nn::Module {
//     using Module::Module;
//     nn::Linear h{*this, "h", 784, 128}, out{*this, "out", 128, 10};
//     Output operator()(Output x) const { return out(relu(h(x))); }
//   };
//   Mlp net{g.scope("mlp")};
//
// Not copyable or movable: parents and children point at each other. The constructor makes the
// variables; a call only adds nodes, so several calls share the variables.
//
// Layers with parameters of f32 take values of f16 and bf16, too, and compute in these; recurrent
// layers do not.
//
// Layers with a training mode use it for nodes built while a guard of train() is alive; otherwise
// they use inference mode. A child may have another mode than its parent, such as a frozen norm.
//
//   { auto training = net.train(); loss = mean(softmax_cross_entropy(net(x), y)); }
//   Output answer = argmax(net(picture));
class Module {
 public:
  explicit Module(Scope scope) : scope_(std::move(scope)) {}
  // A child of `parent`, which must outlive it, and keeps its variables after it.
  Module(Module& parent, std::string_view name)
      : scope_(parent.scope_.scope(name)), parent_(&parent) {
    parent.items_.emplace_back(this);
  }
  Module(const Module&) = delete;
  Module& operator=(const Module&) = delete;

  GraphBuilder& graph() const { return scope_.graph(); }
  const Scope& scope() const { return scope_; }
  // The variables of the module and its children, in the order of creation.
  std::vector<Variable> parameters() const;

  // Sets the mode of the module and its children while it is alive. Guards can be nested.
  class [[nodiscard]] ModeGuard {
   public:
    ModeGuard(const ModeGuard&) = delete;
    ModeGuard& operator=(const ModeGuard&) = delete;
    ~ModeGuard() { module_.training_ = before_; }

   private:
    friend class Module;
    ModeGuard(Module& module, bool training)
        : module_(module), before_(std::exchange(module.training_, training)) {}
    Module& module_;
    std::optional<bool> before_;
  };
  ModeGuard train() { return {*this, true}; }
  ModeGuard eval() { return {*this, false}; }
  // Whether the module is in training mode.
  bool training() const {
    return training_ ? *training_ : parent_ != nullptr && parent_->training();
  }

 protected:
  ~Module();
  // Makes a variable of this module.
  Variable parameter(std::string_view name, Output initial, Site site = Site::here(),
                     const VariableOptions& options = {});
  Variable parameter(std::string_view name, Tensor initial, Site site = Site::here(),
                     const VariableOptions& options = {});

 private:
  Scope scope_;
  Module* parent_ = nullptr;
  std::optional<bool> training_;  // empty: as the parent
  std::vector<std::variant<Variable, Module*>> items_;
};

}  // namespace troupe::nn
