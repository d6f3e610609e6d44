// A chain of layers.
#pragma once

#include <concepts>
#include <functional>
#include <memory>
#include <vector>

#include "ops/api/node.hpp"
#include "ops/nn/module.hpp"

namespace troupe::nn {

// A network that is a chain of layers: the result of each is the input of the next.
//
//   nn::Sequential net{g.scope("net")};
//   net.add<nn::Linear>("hidden", 784, 128).add(relu).add<nn::Dropout>("drop", 0.2);
//   net.add<nn::Linear>("out", 128, 10);
class Sequential : public Module {
 public:
  using Module::Module;

  // Makes a child module from its name and its other constructor arguments.
  template <std::derived_from<Module> Layer, class... Args>
  Sequential& add(std::string_view name, Args&&... args) {
    auto layer = std::make_shared<Layer>(*this, name, std::forward<Args>(args)...);
    return push([layer](Output x, const Site& site) { return (*layer)(x, site); });
  }
  // A function of an Output, with or without a site: relu, or a lambda.
  template <class F>
  requires(std::is_invocable_r_v<Output, const F&, Output> ||
           std::is_invocable_r_v<Output, const F&, Output, Site>)
      Sequential& add(F function, Site site = Site::here()) {
    // Function pointers and std::function can be empty; lambdas cannot.
    if constexpr (std::is_pointer_v<F> || requires { function.target_type(); })
      if (!function) throw Error(invalid_argument("Sequential: the function is empty").at(site));
    return push([function](Output x, [[maybe_unused]] const Site& site) {
      if constexpr (std::is_invocable_v<const F&, Output, Site>)
        return function(x, site);
      else
        return function(x);
    });
  }

  // For overloaded functions, such as softmax.
  Sequential& add(Output (*function)(Output, Site)) {
    return push([function](Output x, const Site& site) { return function(x, site); });
  }

  Output operator()(Output x, Site site = Site::here()) const {
    check_given("Sequential: x", x, site);
    for (std::size_t i = 0; i < steps_.size(); ++i) {
      x = steps_[i](x, site);
      if (x.empty())
        check_given("Sequential: what layer " + std::to_string(i) + " returns", x, site);
    }
    return x;
  }

 private:
  using Step = std::function<Output(Output, const Site&)>;
  Sequential& push(Step step) {
    steps_.push_back(std::move(step));
    return *this;
  }
  std::vector<Step> steps_;
};

}  // namespace troupe::nn
