// Modules: parts of a network that own variables.
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

// A part of a network: a scope, variables of its own, and parts that register themselves in it.
//
//   struct Mlp : nn::Module {
//     using Module::Module;
//     nn::Linear h{*this, "h", 784, 128}, out{*this, "out", 128, 10};
//     Output operator()(Output x) const { return out(relu(h(x))); }
//   };
//   Mlp net{g.scope("mlp")};
//
// Neither copies nor moves: parents and children point at each other. Variables are made when the
// module is; calling it adds nodes only, so it can be called several times on shared variables.
//
// Some layers do one thing while a model is trained and another when it is used. What is built
// while a guard of train() lives is for training; else it is for use. A part can be told otherwise
// than the whole (a norm that is not to be trained any more).
//
//   { auto training = net.train(); loss = mean(softmax_cross_entropy(net(x), y)); }
//   Output answer = argmax(net(picture));
class Module {
 public:
  explicit Module(Scope scope) : scope_(std::move(scope)) {}
  // A part of `parent`, which must outlive it.
  Module(Module& parent, std::string_view name)
      : scope_(parent.scope_.scope(name)), parent_(&parent) {
    parent.items_.emplace_back(this);
  }
  Module(const Module&) = delete;
  Module& operator=(const Module&) = delete;

  GraphBuilder& graph() const { return scope_.graph(); }
  const Scope& scope() const { return scope_; }
  // Variables of the module and its parts, in the order of creation.
  std::vector<Variable> parameters() const;

  // While it lives, the module and its parts are in a mode. Guards of one module nest.
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
  // Whether a call now is for training.
  bool training() const {
    return training_ ? *training_ : parent_ != nullptr && parent_->training();
  }

 protected:
  ~Module() = default;
  // Makes a variable of this module.
  Variable parameter(std::string_view name, Output initial, Site site,
                     const VariableOptions& options = {});
  Variable parameter(std::string_view name, Tensor initial, Site site,
                     const VariableOptions& options = {});

 private:
  Scope scope_;
  const Module* parent_ = nullptr;
  std::optional<bool> training_;  // empty: as the parent
  std::vector<std::variant<Variable, const Module*>> items_;
};

}  // namespace troupe::nn
