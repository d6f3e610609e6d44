// Rows for steps and sequences of recurrent layers.
#include "tests/ops/kernels/conformance.hpp"

namespace troupe::test {
namespace {

const AddCases steps([] {
  const Tensor gates = any({3, 8}, 0.1, 0.9), state = any({3, 2}), other = any({3, 2}, -0.5, 2);
  return Cases{
      {.op = "LstmCell",
       .inputs = {any({3, 8}, -2, 2), any({3, 8}), state},
       .differentiate = {0, 1, 2}},
      {.op = "LstmCell",
       .inputs = {f64({1, 4}, {0, 0, 0, 0}), f64({1, 4}, {0, 0, 0, 0}), f64({1, 1}, {2})},
       .want = {f64({1, 1}, {0.5 * 0.7615941559557649}), f64({1, 1}, {1}),
                f64({1, 4}, {0.5, 0.5, 0, 0.5})}},
      {.op = "LstmCell",
       .inputs = {f32({1, 4}, {0.25f, -2, 1, -8}), f32({1, 4}, {0.25f, 0, -3, 16}),
                  f32({1, 1}, {-3})},
       .want = {f32({1, 1}, {-0.74298954f}), f32({1, 1}, {-0.95767673f}),
                f32({1, 4}, {0.62245935f, 0.11920292f, -0.96402758f, 0.99966466f})}},
      {.op = "LstmCell", .inputs = {any({2, 0}), any({2, 0}), any({2, 0})}},
      {.op = "LstmCell", .inputs = {any({3, 8}), any({3, 8}), any({3, 3})}, .error = "four"},
      {.op = "LstmCell", .inputs = {any({3, 6}), any({3, 6}), any({3, 2})}, .error = "four"},
      {.op = "LstmCellGrad",
       .inputs = {state, other, gates, other, state},
       .differentiate = {0, 1, 2, 3, 4}},
      {.op = "LstmCellGrad", .inputs = {state, any({2, 2}), gates, other, state}, .error = "2"},
  };
});

const AddCases sequences([] {
  const Tensor h0 = any({2, 3}), c0 = any({2, 3}, -0.5, 1.5), r = any({3, 12});
  const Tensor states = any({4, 2, 3}), gates = any({4, 2, 12}, 0.1, 0.9);
  const AttrMap four{{"steps", std::int64_t{4}}}, any_number{{"steps", std::int64_t{-1}}};
  const auto none = [](Shape shape) { return Tensor::zeros(DType::f64, shape).value(); };
  return Cases{
      {.op = "LstmSequence",
       .inputs = {any({4, 2, 12}, -2, 2), h0, c0, r},
       .attrs = four,
       .differentiate = {0, 1, 2, 3}},
      {.op = "LstmSequence",
       .inputs = {any({1, 2, 12}), h0, c0, r},
       .attrs = {{"steps", std::int64_t{1}}},
       .differentiate = {0, 1, 2, 3}},
      {.op = "LstmSequence",
       .inputs = {any({4, 0, 12}), any({0, 3}), any({0, 3}), r},
       .attrs = four},
      {.op = "LstmSequence", .inputs = {any({4, 2, 12}), h0, c0, r}, .attrs = any_number},
      {.op = "LstmSequence", .inputs = {any({0, 2, 12}), h0, c0, r}, .attrs = any_number},
      {.op = "LstmSequence", .inputs = {any({3, 2, 12}), h0, c0, r}, .attrs = four, .error = "3"},
      {.op = "LstmSequence",
       .inputs = {any({4, 2, 12}), h0, c0, any({3, 8})},
       .attrs = four,
       .error = "8"},
      {.op = "LstmSequence",
       .inputs = {any({0, 2, 12}), h0, c0, r},
       .attrs = {{"steps", std::int64_t{0}}},
       .error = "at least one step"},
      {.op = "LstmSequenceGrad",
       .inputs = {states, any({4, 2, 3}, 0, 1), gates, any({4, 2, 3}), any({4, 2, 3}, -1, 2), h0,
                  c0, r},
       .attrs = four,
       .differentiate = {0, 1, 2, 3, 4, 5, 6, 7}},
      {.op = "LstmSequenceGrad",
       .inputs = {states, states, gates, states, states, h0, c0, r},
       .attrs = any_number},
      {.op = "LstmSequenceGrad",
       .inputs = {any({0, 2, 3}), any({0, 2, 3}), any({0, 2, 12}), any({0, 2, 3}), any({0, 2, 3}),
                  h0, c0, r},
       .attrs = any_number,
       .want = {any({0, 2, 12}), none({2, 3}), none({2, 3}), none({3, 12})}},
      {.op = "LstmSequenceGrad",
       .inputs = {states, states, gates, states, states, h0, c0, any({3, 3})},
       .attrs = four,
       .error = "3"},
  };
});

}  // namespace
}  // namespace troupe::test
