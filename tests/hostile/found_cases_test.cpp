// Hostile cases that no row of the conformance test can hold: gradients where no rank is known,
// lists, and rules on values, whose names no node may have.
#include <doctest/doctest.h>

#include <limits>

#include "tests/contains.hpp"
#include "tests/hostile/hostile_run.hpp"
#include "tests/ops/kernels/conformance.hpp"

namespace troupe::test {
namespace {

// Fed as of unknown shapes.
void check_refused(const std::string& op, const std::vector<Tensor>& inputs, AttrMap attrs,
                   const char* why, int gradients = 0) {
  HostileCase row{.op = op, .attrs = std::move(attrs), .gradients = gradients};
  for (const Tensor& t : inputs)
    row.inputs.push_back({.from = HostileInput::From::feed, .value = t});
  INFO(row.text());
  HostileRunner runner(ops::builtin());
  const HostileOutcome ended = runner.run(row);
  CHECK_MESSAGE(ended.fault.empty(), ended.fault);
  CHECK(ended.end != HostileEnd::computed);
  CHECK_MESSAGE(contains(ended.status, why), ended.status);
}

}  // namespace

TEST_CASE("the gradient of a Transpose without a permutation is refused before its rank is known") {
  const Tensor x = any({1, 3});
  check_refused("Transpose", {x}, {{"perm", ints({1, 3})}}, "axis 3", 1);
  check_refused("Transpose", {x}, {{"perm", ints({std::int64_t{1} << 32, 0})}}, "axis", 1);
  check_refused("Transpose", {x}, {{"perm", ints({0, 0})}}, "twice", 1);
  check_refused("Transpose", {x}, {{"perm", std::vector<std::int64_t>(9, 0)}}, "perm", 1);
}

TEST_CASE("the gradient of a Roll with more shifts than axes is refused before its rank is known") {
  check_refused("Roll", {any({3, 4})},
                {{"shift", ints({std::numeric_limits<std::int64_t>::min()})}, {"axes", ints({})}},
                "1 shifts for 0 axes", 1);
}

TEST_CASE("a list of more rows without elements than memory could hold is refused") {
  const std::int64_t many = std::int64_t{1} << 40;
  check_refused("ListUnstack", {Tensor::zeros(DType::f32, {many, 0}).value()}, {},
                "rows without elements");
}

TEST_CASE("rules of rows refuse values that are not like their variable") {
  const Tensor var = any({3, 2}), one = Tensor::scalar(0.5), rows = any({1, 2});
  const Tensor index = i64({1}, {2});
  for (const char* op : {"_ApplySparseMomentum", "_ApplySparseRMSProp"}) {
    std::vector<Tensor> inputs{var, any({2})};
    if (std::string(op) == "_ApplySparseRMSProp") inputs = {var, var, any({2}), one, one};
    inputs.insert(inputs.end(), {one, one, index, rows});
    check_refused(op, inputs, {}, "has shape [2], but the variable has [3,2]");
  }
  check_refused("_ApplySparseMomentum", {var, var, any({0}), one, index, rows}, {},
                "has shape [0]");
}

}  // namespace troupe::test
