// A function of the graph as a stage calls it.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "ops/data/source.hpp"

namespace troupe {

// What it gives is a function of the values and of `draw`, which stands for the run in all that it
// draws. One user at a time.
class ExampleFunction {
 public:
  virtual ~ExampleFunction() = default;
  virtual const Signature& arguments() const = 0;
  virtual const Signature& results() const = 0;
  // REQUIRES: values that fit the arguments. Results fit results(); errors name the node.
  virtual Expected<std::vector<Tensor>> call(std::vector<Tensor> values, std::uint64_t draw) = 0;
  // The same function for another user at the same time; null: there can be none.
  virtual std::shared_ptr<ExampleFunction> another() const { return nullptr; }
};
using ExampleFunctionPtr = std::shared_ptr<ExampleFunction>;
using ExampleFunctions = std::span<const ExampleFunctionPtr>;

}  // namespace troupe
