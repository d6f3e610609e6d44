// Rows for norms.
#include <cmath>

#include "tests/ops/kernels/conformance.hpp"

namespace troupe::test {
namespace {

const AddCases layer_norms([] {
  const Tensor x = any({2, 3, 4}, -2, 2), scale = any({4}, 0.5, 2), offset = any({4});
  const AttrMap epsilon{{"epsilon", 0.1}};
  return Cases{
      {.op = "LayerNorm",
       .inputs = {x, scale, offset},
       .attrs = epsilon,
       .differentiate = {0, 1, 2}},
      {.op = "LayerNorm",
       .inputs = {any({4}, -1, 1), scale, offset},
       .attrs = epsilon,
       .differentiate = {0, 1, 2}},
      {.op = "LayerNorm",
       .inputs = {f64({2, 2}, {1, 3, -5, -5}), f64({2}, {2, 1}), f64({2}, {0, 10})},
       .attrs = {{"epsilon", 0.0}},
       .want = {f64({2, 2}, {-2, 11, std::nan(""), std::nan("")})}},
      {.op = "LayerNorm",
       .inputs = {f32({1, 4}, {1, 1, 3, 3}), f32({4}, {1, 1, 1, 1}), f32({4}, {0, 0, 0, 1})},
       .attrs = {{"epsilon", 3.0}},
       .want = {f32({1, 4}, {-0.5f, -0.5f, 0.5f, 1.5f})}},
      {.op = "LayerNorm", .inputs = {any({0, 4}), scale, offset}},
      {.op = "LayerNorm", .inputs = {any({3, 0}), any({0}), any({0})}},
      {.op = "LayerNorm", .inputs = {x, any({3}), offset}, .error = "3"},
      {.op = "LayerNorm", .inputs = {x, scale, any({1, 4})}, .error = "[1,4]"},
      {.op = "LayerNorm", .inputs = {f64({}, {1}), any({1}), any({1})}, .error = "LayerNorm"},
      {.op = "LayerNorm",
       .inputs = {x, scale, offset},
       .attrs = {{"epsilon", -1.0}},
       .error = "epsilon"},
      {.op = "LayerNormGrad",
       .inputs = {any({2, 3, 4}), x, scale},
       .attrs = epsilon,
       .differentiate = {0, 1, 2}},
      {.op = "LayerNormGrad",
       .inputs = {any({4}), any({4}, -2, 1), scale},
       .attrs = epsilon,
       .differentiate = {0, 1, 2}},
      {.op = "LayerNormGrad",
       .inputs = {any({0, 4}), any({0, 4}), scale},
       .want = {any({0, 4}), f64({4}, {0, 0, 0, 0}), f64({4}, {0, 0, 0, 0})}},
      {.op = "LayerNormGrad", .inputs = {any({3, 4}), x, scale}, .error = "[3,4]"},
      {.op = "LayerNormGrad", .inputs = {x, x, any({3})}, .error = "3"},
  };
});

const AddCases group_norms([] {
  const Tensor x = any({2, 3, 6}, -2, 2), scale = any({6}, 0.5, 2), offset = any({6});
  const AttrMap three{{"groups", 3}, {"epsilon", 0.1}}, one{{"groups", 1}, {"epsilon", 0.1}};
  const AttrMap each{{"groups", 6}, {"epsilon", 0.1}};
  const Tensor none = any({0, 2, 6}), zeros = f64({6}, {0, 0, 0, 0, 0, 0});
  Cases rows{
      {.op = "GroupNorm",
       .inputs = {f64({1, 2, 2}, {1, -5, 3, -5}), f64({2}, {2, 1}), f64({2}, {0, 10})},
       .attrs = {{"groups", 2}, {"epsilon", 0.0}},
       .want = {f64({1, 2, 2}, {-2, std::nan(""), 2, std::nan("")})}},
      {.op = "GroupNorm",
       .inputs = {f32({2, 4}, {1, 1, 3, 3, 1, 3, 3, 1}), f32({4}, {1, 1, 1, 2}),
                  f32({4}, {0, 0, 0, 1})},
       .attrs = {{"groups", 1}, {"epsilon", 3.0}},
       .want = {f32({2, 4}, {-0.5f, -0.5f, 0.5f, 2, -0.5f, 0.5f, 0.5f, 0})}},
      {.op = "GroupNorm", .inputs = {none, scale, offset}, .attrs = three},
      {.op = "GroupNorm", .inputs = {any({2, 0, 6}), scale, offset}, .attrs = three},
      {.op = "GroupNorm", .inputs = {any({2, 3, 0}), any({0}), any({0})}, .attrs = three},
      {.op = "GroupNorm", .inputs = {x, any({3}), offset}, .attrs = three, .error = "scale"},
      {.op = "GroupNorm", .inputs = {x, scale, any({1, 6})}, .attrs = three, .error = "[1,6]"},
      {.op = "GroupNorm", .inputs = {any({6}), scale, offset}, .attrs = three, .error = "2"},
      {.op = "GroupNorm",
       .inputs = {x, scale, offset},
       .attrs = {{"groups", 4}},
       .error = "4 groups do not divide 6 channels"},
      {.op = "GroupNorm",
       .inputs = {x, scale, offset},
       .attrs = {{"groups", 0}},
       .error = "0 groups"},
      {.op = "GroupNorm", .inputs = {x, scale, offset}, .attrs = {{"groups", -3}}, .error = "-3"},
      {.op = "GroupNorm",
       .inputs = {x, scale, offset},
       .attrs = {{"groups", 3}, {"epsilon", -1.0}},
       .error = "epsilon"},
      {.op = "GroupNormGrad",
       .inputs = {none, none, scale},
       .attrs = three,
       .want = {none, zeros, zeros}},
      {.op = "GroupNormGrad", .inputs = {any({3, 6}), x, scale}, .attrs = three, .error = "[3,6]"},
      {.op = "GroupNormGrad", .inputs = {x, x, any({3})}, .attrs = three, .error = "3"},
      {.op = "GroupNormGrad",
       .inputs = {x, x, scale},
       .attrs = {{"groups", 4}},
       .error = "4 groups do not divide 6 channels"},
  };
  const AttrMap five{{"groups", 5}};
  for (const Shape& shape : {Shape{3, 700, 50}, Shape{20, 60, 50}}) {  // for several lanes
    const Tensor x = any(shape, -2, 2), scale = any({50}, 0.5, 2);
    rows.push_back({.op = "GroupNorm", .inputs = {x, scale, any({50})}, .attrs = five});
    rows.push_back({.op = "GroupNormGrad", .inputs = {any(shape), x, scale}, .attrs = five});
  }
  for (const AttrMap& attrs : {three, one, each})
    for (const Shape& shape : {Shape{2, 3, 6}, Shape{3, 6}, Shape{2, 2, 2, 6}}) {
      const Tensor x = any(shape, -2, 2);
      rows.push_back({.op = "GroupNorm",
                      .inputs = {x, scale, offset},
                      .attrs = attrs,
                      .differentiate = {0, 1, 2}});
      rows.push_back({.op = "GroupNormGrad",
                      .inputs = {any(shape), x, scale},
                      .attrs = attrs,
                      .differentiate = {0, 1, 2}});
    }
  return rows;
});

const AddCases euclidean([] {
  return Cases{
      {.op = "EuclideanNorm", .inputs = {any({3, 2}, 0.5, 2)}, .differentiate = {0}},
      {.op = "EuclideanNorm", .inputs = {f32({3}, {2, -3, 6})}, .want = {f64({}, {7})}},
      {.op = "EuclideanNorm", .inputs = {f64({2}, {0, 0})}, .want = {f64({}, {0})}},
      {.op = "EuclideanNorm", .inputs = {any({0})}, .want = {f64({}, {0})}},
      {.op = "EuclideanNorm", .inputs = {f64({2}, {3e300, -4e300})}, .want = {f64({}, {5e300})}},
      {.op = "EuclideanNorm", .inputs = {f64({2}, {HUGE_VAL, 1})}, .want = {f64({}, {HUGE_VAL})}},
      {.op = "EuclideanNorm",
       .inputs = {f64({3}, {HUGE_VAL, std::nan(""), 1})},
       .want = {f64({}, {std::nan("")})}},
  };
});

}  // namespace
}  // namespace troupe::test
