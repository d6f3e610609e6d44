// Rows for attention, with and without a mask, and its gradient.
#include <cmath>

#include "tests/ops/kernels/conformance.hpp"

namespace troupe::test {
namespace {

AttrMap attributes(bool causal, double scale = 0.7) {
  return {{"scale", scale}, {"causal", causal}, {"Tstats", DType::f64}};
}

template <class T>
Cases half_attention() {
  // Weights of 1/4 and 3/4: log 3 apart.
  const Tensor q = halves<T>({1, 1, 1}, {2}), k = halves<T>({1, 2, 1}, {0.25, 0.25}),
               v = halves<T>({1, 2, 2}, {1, 3, 5, -1}), y = halves<T>({1, 1, 2}, {3, 1}),
               dy = halves<T>({1, 1, 2}, {1, 2});
  const Tensor stats = f32({1, 1}, {1 + float(std::log(2.0))});
  const AttrMap twice{{"scale", 2.0}};
  return {
      {.op = "DotProductAttention", .inputs = {q, k, v}, .attrs = twice, .want = {y, stats}},
      {.op = "MaskedDotProductAttention",
       .inputs = {q, k, v, bools({2}, {false, true})},
       .want = {halves<T>({1, 1, 2}, {5, -1}), f32({1, 1}, {0.5f})}},
      // p = 1/2 each; dp = (7, 3), their mean 5; ds = (1, -1) times the scale.
      {.op = "DotProductAttentionGrad",
       .inputs = {dy, q, k, v, y, stats},
       .attrs = twice,
       .want = {halves<T>({1, 1, 1}, {0}), halves<T>({1, 2, 1}, {4, -4}),
                halves<T>({1, 2, 2}, {0.5, 1, 0.5, 1})}},
  };
}

const AddCases attention([] {
  const Tensor q = any({2, 3, 4}, -2, 2), k = any({2, 5, 4}), v = any({2, 5, 3});
  const Tensor y = any({2, 3, 3}), dy = any({2, 3, 3}, 0.2, 2), stats = any({2, 3}, 0.5, 2);
  // The last query of the first problem may not look anywhere.
  const Tensor mask =
      bools({2, 3, 5}, {true,  false, true,  true,  false, true, true,  true,  true,  true,
                        false, false, false, false, false, true, false, false, false, false,
                        false, true,  true,  false, true,  true, true,  true,  true,  true});
  const double half_log = std::log(2.0) / 2;
  // Of one shape, so that any two may be one tensor.
  const std::vector<Tensor> alike{any({3, 3}), any({3, 3}, -1, 2), any({3, 3}, -2, 1)};
  const std::vector<Tensor> alike_back{any({3, 3}, 0, 2), alike[0],           alike[1],
                                       alike[2],          any({3, 3}, -1, 0), any({3}, 0.5, 2)};
  Cases rows{
      {.op = "DotProductAttention",
       .inputs = {q, k, v},
       .attrs = attributes(false),
       .differentiate = {0, 1, 2}},
      {.op = "DotProductAttention",
       .inputs = {q, k, v},
       .attrs = attributes(true),
       .differentiate = {0, 1, 2}},
      {.op = "DotProductAttention",  // more queries than keys, in one matrix
       .inputs = {any({3, 2}), any({2, 2}), any({2, 1})},
       .attrs = attributes(true),
       .differentiate = {0, 1, 2}},
      {.op = "DotProductAttention",
       .inputs = {f64({1, 1}, {1}), f64({2, 1}, {half_log, -half_log}), f64({2, 1}, {3, 6})},
       .attrs = {{"Tstats", DType::f64}},
       .want = {f64({1, 1}, {4}), f64({1}, {std::log(std::exp(half_log) + std::exp(-half_log))})}},
      {.op = "DotProductAttention",
       .inputs = {f32({1, 1}, {2}), f32({1, 1}, {3}), f32({1, 2}, {5, 7})},
       .want = {f32({1, 2}, {5, 7}), f32({1}, {6})}},
      {.op = "DotProductAttention",
       .inputs = alike,
       .attrs = attributes(true),
       .differentiate = {0, 1, 2}},
      {.op = "MaskedDotProductAttention",
       .inputs = {alike[0], alike[1], alike[2], bools({3}, {true, false, true})},
       .attrs = attributes(false),
       .differentiate = {0, 1, 2}},
      {.op = "DotProductAttentionGrad",
       .inputs = alike_back,
       .attrs = attributes(true),
       .differentiate = {0, 1, 2, 3, 4, 5}},
      {.op = "MaskedDotProductAttentionGrad",
       .inputs = {alike_back[0], alike_back[1], alike_back[2], alike_back[3], alike_back[4],
                  alike_back[5], bools({3, 1}, {true, false, true})},
       .attrs = attributes(true),
       .differentiate = {0, 1, 2, 3, 4, 5}},
      {.op = "DotProductAttention",  // no keys
       .inputs = {f32({2, 1}, {2, 1}), f32({0, 1}, {}), f32({0, 2}, {})},
       .want = {f32({2, 2}, {0, 0, 0, 0}), f32({2}, {0, 0})}},
      {.op = "DotProductAttention",
       .inputs = {f32({0, 1}, {}), f32({1, 1}, {1}), f32({1, 2}, {1, 2})}},
      {.op = "DotProductAttention",
       .inputs = {f32({0, 1, 1}, {}), f32({0, 1, 1}, {}), f32({0, 1, 2}, {})}},
      {.op = "DotProductAttention",  // a score of NaN
       .inputs = {f32({1, 1}, {1}), f32({2, 1}, {float(kNan), 1}), f32({2, 1}, {1, 2})},
       .want = {f32({1, 1}, {float(kNan)}), f32({1}, {float(kNan)})}},
      {.op = "DotProductAttention",
       .inputs = {q, any({2, 5, 3}), v},
       .attrs = attributes(false),
       .error = "4"},
      {.op = "DotProductAttention",
       .inputs = {q, k, any({2, 4, 3})},
       .attrs = attributes(false),
       .error = "4"},
      {.op = "DotProductAttention",
       .inputs = {q, any({5, 4}), v},
       .attrs = attributes(false),
       .error = "[5,4]"},
      {.op = "DotProductAttention", .inputs = {q, k, v}, .error = "f64 for f64"},
      {.op = "MaskedDotProductAttention",
       .inputs = {q, k, v, mask},
       .attrs = attributes(false),
       .differentiate = {0, 1, 2}},
      {.op = "MaskedDotProductAttention",
       .inputs = {q, k, v,
                  bools({2, 1, 5},
                        {true, false, true, true, false, false, true, true, false, true})},
       .attrs = attributes(true),
       .differentiate = {0, 1, 2}},
      {.op = "MaskedDotProductAttention",
       .inputs = {f32({2, 1}, {1, 2}), f32({2, 1}, {1, 1}), f32({2, 1}, {3, 6}),
                  bools({2, 1}, {false, true})},
       .want = {f32({2, 1}, {0, 4.5f}), f32({2}, {0, 2 + float(std::log(2.0))})}},
      {.op = "MaskedDotProductAttention",
       .inputs = {q, k, v,
                  bools({2, 5}, {true, true, true, true, true, true, true, true, true, true})},
       .attrs = attributes(false),
       .error = "[2,5]"},
      {.op = "DotProductAttentionGrad",
       .inputs = {dy, q, k, v, y, stats},
       .attrs = attributes(false),
       .differentiate = {0, 1, 2, 3, 4, 5}},
      {.op = "DotProductAttentionGrad",
       .inputs = {dy, q, k, v, y, stats},
       .attrs = attributes(true),
       .differentiate = {0, 1, 2, 3, 4, 5}},
      {.op = "DotProductAttentionGrad",
       .inputs = {any({2, 3, 2}), q, k, v, y, stats},
       .attrs = attributes(false),
       .error = "[2,3,2]"},
      {.op = "MaskedDotProductAttentionGrad",
       .inputs = {dy, q, k, v, y, stats, mask},
       .attrs = attributes(false),
       .differentiate = {0, 1, 2, 3, 4, 5}},
      {.op = "MaskedDotProductAttentionGrad",
       .inputs = {dy, q, k, v, y, stats, bools({1, 5}, {true, false, true, true, true})},
       .attrs = attributes(true),
       .differentiate = {0, 1, 2, 3, 4, 5}},
  };
  for (const Cases& more : {half_attention<half>(), half_attention<bfloat16>()})
    rows.insert(rows.end(), more.begin(), more.end());
  return rows;
});

}  // namespace
}  // namespace troupe::test
