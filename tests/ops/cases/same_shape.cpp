// Rows for ops that compare shapes.
#include "tests/ops/kernels/conformance.hpp"

namespace troupe::test {
namespace {

const AddCases same_shapes([] {
  const Tensor x = any({2, 3});
  return Cases{
      {.op = "EnsureSameShape", .inputs = {x, any({2, 3})}, .differentiate = {0}, .want = {x}},
      {.op = "EnsureSameShape", .inputs = {x, i64({2, 3}, {1, 2, 3, 4, 5, 6})}, .want = {x}},
      {.op = "EnsureSameShape", .inputs = {strings({}, {"a"}), x}, .error = "[2,3]"},
      {.op = "EnsureSameShape", .inputs = {any({4}), any({4, 1})}, .error = "[4,1]"},
      {.op = "EnsureSameShape", .inputs = {any({4}), any({1})}, .error = "[1]"},
  };
});

}  // namespace
}  // namespace troupe::test
