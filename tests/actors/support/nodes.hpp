// Nodes as tests of actors write them: on a device, in one line.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "ops/api/constant.hpp"
#include "ops/api/generated.hpp"
#include "ops/api/operators.hpp"
#include "ops/api/variable.hpp"
#include "ops/graph_api.hpp"

namespace troupe::test {

inline const char* const kTask0 = "/job:worker/task:0";
inline const char* const kTask1 = "/job:worker/task:1";

inline Op node(Graph& g, const char* device, std::string op, std::vector<Output> inputs,
               AttrMap attrs = {}) {
  auto there = g.with_device(device);
  NodeSpec spec;
  spec.op = std::move(op);
  spec.inputs = std::move(inputs);
  spec.attrs = std::move(attrs);
  spec.site = Site::here();
  return g.add(std::move(spec));
}

inline Variable variable_on(Graph& g, const char* device, std::string_view name, Tensor value,
                            const VariableOptions& options = {}) {
  auto there = g.with_device(device);
  return variable(g, name, std::move(value), options);
}

// A queue of scalars, and its oldest element.
inline Output queue_on(Graph& g, const char* device, FIFOQueueOptions options = {}) {
  auto there = g.with_device(device);
  options.shapes = {PartialShape::scalar()};
  return fifo_queue(g, {DType::f32}, options);
}
inline Output take_from(const Output& queue) {
  return dequeue(queue, {DType::f32}, {.shapes = {PartialShape::scalar()}})[0];
}

}  // namespace troupe::test
