// Rows of the conformance test: what ops refuse that have no hostile row beside their other ones.
#include "tests/ops/kernels/conformance.hpp"

namespace troupe::test {
namespace {

const AddCases refused_types([] {
  Cases rows;
  for (const char* op : {"Abs",
                         "Acos",
                         "Acosh",
                         "All",
                         "Any",
                         "Asin",
                         "Asinh",
                         "Atan",
                         "Atanh",
                         "Ceil",
                         "Cos",
                         "Cosh",
                         "Elu",
                         "Erf",
                         "Gelu",
                         "GeluTanh",
                         "Expm1",
                         "Floor",
                         "IsFinite",
                         "IsInf",
                         "IsNan",
                         "L2Loss",
                         "Log",
                         "Log1p",
                         "EuclideanNorm",
                         "LogSoftmax",
                         "Digamma",
                         "Lgamma",
                         "Neg",
                         "OnesLike",
                         "RandomUniformLike",
                         "Reciprocal",
                         "Relu",
                         "Relu6",
                         "Round",
                         "Rsqrt",
                         "Sigmoid",
                         "Sign",
                         "Sin",
                         "Sinh",
                         "Softmax",
                         "Softplus",
                         "Softsign",
                         "Sqrt",
                         "Square",
                         "Tanh",
                         "ZerosLike"})
    rows.push_back({.op = op, .inputs = {strings({1}, {"a"})}, .error = "string"});
  for (const char* op : {"LogicalAnd", "LogicalOr"})
    rows.push_back({.op = op, .inputs = {i32({1}, {1}), i32({1}, {1})}, .error = "i32"});
  return rows;
});

const AddCases refused_inputs([] {
  Cases rows;
  const Tensor x = f64({2}, {1, 2});
  for (const char* op : {"Identity", "StopGradient", "Shape", "Rank", "Size", "Print"})
    rows.push_back({.op = op, .inputs = {x, x}, .error = "input"});
  for (const char* op : {"NoOp", "MoveAverages"})
    rows.push_back({.op = op, .attrs = {{"wait", true}}, .error = "attribute"});
  for (const char* op : {"LogicalAnd", "LogicalOr"})
    rows.push_back({.op = op,
                    .inputs = {bools({2}, {true, false}), bools({3}, {true, true, true})},
                    .error = "[3]"});
  for (const char* op : {"All", "Any"})
    rows.push_back(
        {.op = op, .inputs = {bools({1}, {true})}, .attrs = {{"axes", ints({1})}}, .error = "ax"});
  for (const char* op : {"RandomStandardNormal", "TruncatedNormal"})
    rows.push_back({.op = op, .attrs = {{"shape", PartialShape{-1}}}, .error = "shape"});
  for (const char* op : {"PowGradBase", "PowGradExponent"})
    rows.push_back({.op = op, .inputs = {x, x, any({3})}, .error = "[3]"});
  return rows;
});

const AddCases refused_values([] {
  const Tensor image = any({1, 2, 2, 1});
  return Cases{
      {.op = "ArgMin", .inputs = {any({2, 2})}, .attrs = {{"axis", -3}}, .error = "axis"},
      {.op = "ArgMin", .inputs = {any({2, 0})}, .error = "no elements"},
      {.op = "AvgPool",
       .inputs = {image},
       .attrs = {{"ksize", ints({2})}, {"strides", ints({1, 1})}},
       .error = "ksize must be"},
      {.op = "AvgPool",
       .inputs = {image},
       .attrs = {{"ksize", ints({3, 3})}, {"strides", ints({1, 1})}},
       .error = "window"},
      {.op = "AvgPool",
       .inputs = {any({2, 2})},
       .attrs = {{"ksize", ints({1, 1})}, {"strides", ints({1, 1})}},
       .error = "[2,2]"},
  };
});

}  // namespace
}  // namespace troupe::test
