// A function of the graph, as called by a stage.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "ops/data/source.hpp"

namespace troupe {

// Its results depend only on the values and on `draw`, which takes the place of the run's number in
// its random numbers. One user at a time.
class ExampleFunction {
 public:
  virtual ~ExampleFunction() = default;
  virtual const Signature& arguments() const = 0;
  virtual const Signature& results() const = 0;
  // REQUIRES: values that fit arguments(). The results fit results(); errors name the node.
  virtual Expected<std::vector<Tensor>> call(std::vector<Tensor> values, std::uint64_t draw) = 0;
  // The same function for a concurrent user; null if that is not possible.
  virtual std::shared_ptr<ExampleFunction> another() const { return nullptr; }
};
using ExampleFunctionPtr = std::shared_ptr<ExampleFunction>;
using ExampleFunctions = std::span<const ExampleFunctionPtr>;

}  // namespace troupe
