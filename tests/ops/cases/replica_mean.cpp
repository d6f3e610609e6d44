#include "tests/ops/kernels/conformance.hpp"

namespace troupe::test {
namespace {

const AddCases replica_mean([] {
  const Tensor x = f64({2}, {1, -2});
  return Cases{
      {.op = "ReplicaMean", .inputs = {x}, .want = {x}},
      {.op = "ReplicaMean",
       .inputs = {x, f64({2}, {3, 4}), f64({2}, {5, 7})},
       .want = {f64({2}, {3, 3})}},
      {.op = "ReplicaMean", .inputs = {f32({}, {1}), f32({}, {2})}, .want = {f32({}, {1.5f})}},
      {.op = "ReplicaMean", .inputs = {any({300, 70}), any({300, 70}, 1, 2)}},
      {.op = "ReplicaMean", .inputs = {x, f64({3}, {1, 2, 3})}, .error = "[3]"},
  };
});

}  // namespace
}  // namespace troupe::test
