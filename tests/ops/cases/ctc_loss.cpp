// Rows for losses of label sequences whose places in time nobody knows.
#include <limits>

#include "tests/ops/kernels/conformance.hpp"

namespace troupe::test {
namespace {

const AddCases ctc_losses([] {
  constexpr double kInf = std::numeric_limits<double>::infinity(),
                   kNan = std::numeric_limits<double>::quiet_NaN();
  const Shape shape{4, 2, 3};
  const Tensor x = f64(shape, {0.5, -1,   0.25, 1, 0, -0.5, -0.25, 0.75, 2, 0.1, 0.2, 0.3,
                               1.5, -0.5, 0,    0, 0, 1,    2,     1,    0, -1,  -2,  0.5});
  const Tensor labels = i64({2, 2}, {1, 2, 2, 2}), two = i64({2}, {2, 2}),
               lengths = i64({2}, {4, 3});
  const Tensor slopes = f64(shape, {0.225990095123459,
                                    -0.615014894260042,
                                    0.389024799136582,
                                    1.25706343842353,
                                    0.462447795244298,
                                    -1.71951123366782,
                                    0.0501754272232564,
                                    -0.123274522498481,
                                    0.0730990952752243,
                                    -1.39878078928855,
                                    0.664449987066695,
                                    0.734330802221851,
                                    0.10443619470478,
                                    0.0803575692487003,
                                    -0.18479376395348,
                                    0.423883115234171,
                                    0.423883115234171,
                                    -0.847766230468342,
                                    -0.157099514016112,
                                    0.244728471054798,
                                    -0.0876289570386853,
                                    0,
                                    0,
                                    0});
  const AttrMap last{{"blank", 2}};
  const auto none = [](const Shape& s) { return Tensor::zeros(DType::f64, s).value(); };
  return Cases{
      {.op = "CTCLoss",
       .inputs = {x, labels, two, lengths},
       .differentiate = {0},
       .want = {f64({2}, {2.574968384533415, 3.7177563462692405})}},
      // Labels behind their number, and frames behind theirs, are looked at by nobody.
      {.op = "CTCLoss",
       .inputs = {any({5, 3, 4}, -3, 3), i32({3, 2}, {1, 1, 3, 99, -7, 2}), i32({3}, {2, 1, 0}),
                  i32({3}, {4, 5, 2})},
       .differentiate = {0}},
      {.op = "CTCLoss",
       .inputs = {any({3, 2, 3}), i64({2, 2}, {0, 1, 1, 0}), two, i64({2}, {3, 2})},
       .attrs = last,
       .differentiate = {0}},
      {.op = "CTCLoss",
       .inputs = {f32({1, 1, 2}, {0, 0}), i64({1, 1}, {1}), i64({1}, {1}), i64({1}, {1})},
       .want = {f32({1}, {0.69314718f})}},
      // Far apart, of whose probabilities exponentials would be 0.
      {.op = "CTCLoss",
       .inputs = {f64({1, 1, 2}, {2000, 0}), i64({1, 1}, {1}), i64({1}, {1}), i64({1}, {1})},
       .want = {f64({1}, {2000})}},
      // Two equal labels need a blank between them: three frames.
      {.op = "CTCLoss",
       .inputs = {none({2, 2, 2}), i64({2, 2}, {1, 1, 1, 1}), two, i64({2}, {2, 2})},
       .want = {f64({2}, {kInf, kInf})}},
      {.op = "CTCLoss",
       .inputs = {none({3, 2, 3}), i64({2, 1}, {1, 1}), i64({2}, {0, 1}), i64({2}, {0, 0})},
       .want = {f64({2}, {0, kInf})}},
      {.op = "CTCLoss",
       .inputs = {none({0, 1, 2}), i64({1, 0}, {}), i64({1}, {0}), i64({1}, {0})},
       .want = {f64({1}, {0})}},
      {.op = "CTCLoss",
       .inputs = {none({4, 0, 3}), i64({0, 2}, {}), i64({0}, {}), i64({0}, {})},
       .want = {f64({0}, {})}},
      {.op = "CTCLoss",
       .inputs = {f64({2, 1, 2}, {0, kNan, 0, 0}), i64({1, 1}, {1}), i64({1}, {1}), i64({1}, {2})},
       .want = {f64({1}, {kNan})}},
      {.op = "CTCLoss",
       .inputs = {x, i64({2, 2}, {1, 0, 2, 2}), two, lengths},
       .error = "labels[0,1] = 0 is the blank"},
      {.op = "CTCLoss",
       .inputs = {x, i64({2, 2}, {1, 3, 2, 2}), two, lengths},
       .error = "labels[0,1] = 3 is the blank, or outside [0, 3)"},
      {.op = "CTCLoss",
       .inputs = {x, labels, i64({2}, {3, 2}), lengths},
       .error = "label_lengths[0] = 3 is outside [0, 2]"},
      {.op = "CTCLoss",
       .inputs = {x, labels, i64({2}, {-1, 2}), lengths},
       .error = "label_lengths[0] = -1"},
      {.op = "CTCLoss",
       .inputs = {x, labels, two, i64({2}, {4, 5})},
       .error = "lengths[1] = 5 is outside [0, 4]"},
      {.op = "CTCLoss", .inputs = {x, labels, i64({3}, {1, 1, 1}), lengths}, .error = "sequences"},
      {.op = "CTCLoss", .inputs = {any({4, 2}), labels, two, lengths}, .error = "rank"},
      {.op = "CTCLoss",
       .inputs = {x, labels, two, lengths},
       .attrs = {{"blank", 3}},
       .error = "the blank 3"},
      {.op = "CTCLoss",
       .inputs = {x, labels, two, lengths},
       .attrs = {{"blank", -1}},
       .error = "the blank -1"},
      {.op = "CTCLossGrad",
       .inputs = {x, labels, two, lengths, f64({2}, {1, 2})},
       .want = {slopes}},
      {.op = "CTCLossGrad",
       .inputs = {any({4, 2, 3}), labels, two, lengths, any({2})},
       .differentiate = {0, 4},
       .orders = 1},
      {.op = "CTCLossGrad",
       .inputs = {any({2, 1, 3}), i64({1, 2}, {1, 1}), i64({1}, {2}), i64({1}, {2}), f64({1}, {1})},
       .want = {none({2, 1, 3})}},
      {.op = "CTCLossGrad",
       .inputs = {x, labels, two, lengths, f64({3}, {1, 2, 3})},
       .error = "sequences"},
      {.op = "CTCLossGradGrad",
       .inputs = {x, labels, two, lengths, f64({2}, {1, 2}), none(shape)},
       .want = {f64({2}, {0, 0}), none(shape)}},
      {.op = "CTCLossGradGrad",
       .inputs = {x, labels, two, lengths, f64({2}, {1, 2}), none({4, 2, 2})},
       .error = "[4,2,2]"},
  };
});

}  // namespace
}  // namespace troupe::test
