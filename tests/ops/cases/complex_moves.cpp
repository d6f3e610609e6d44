// Ops that move complex numbers, or add them up, and products of their matrices.
#include <complex>

#include "tests/ops/kernels/conformance.hpp"

namespace troupe::test {
namespace {

using namespace std::complex_literals;

const AddCases complex_moves([] {
  const Tensor x = any_complex({2, 3});
  const auto lists = [](std::initializer_list<std::int64_t> v) {
    return Tensor::of(Shape{std::int64_t(v.size())}, v);
  };
  const Tensor z = c128({2, 2}, {1.0 + 1i, 2i, 3, -1i});
  return Cases{
      {.op = "Identity", .inputs = {x}, .differentiate = {0}},
      {.op = "Reshape", .inputs = {x, lists({3, -1})}, .differentiate = {0}},
      {.op = "Transpose", .inputs = {x}, .differentiate = {0}},
      {.op = "Transpose", .inputs = {z}, .want = {c128({2, 2}, {1.0 + 1i, 3, 2i, -1i})}},
      {.op = "Concat",
       .inputs = {x, any_complex({2, 1})},
       .attrs = {{"axis", 1}},
       .differentiate = {0, 1}},
      {.op = "Split", .inputs = {x}, .attrs = {{"axis", 1}, {"N", 3}}, .differentiate = {0}},
      {.op = "Pack", .inputs = {x, any_complex({2, 3})}, .differentiate = {0, 1}},
      {.op = "Unpack", .inputs = {x}, .attrs = {{"axis", 1}, {"N", 3}}, .differentiate = {0}},
      {.op = "Slice", .inputs = {x, lists({0, 1}), lists({2, 2})}, .differentiate = {0}},
      {.op = "SliceGrad",
       .inputs = {any_complex({1, 2}), lists({1, 1}), lists({2, 3})},
       .differentiate = {0}},
      {.op = "SliceAdd",
       .inputs = {x, any_complex({1, 2}), lists({1, 1}), lists({2, 3})},
       .differentiate = {0, 1}},
      {.op = "StridedSlice",
       .inputs = {x, lists({0, 2}), lists({2, 0}), lists({1, -1})},
       .differentiate = {0}},
      {.op = "StridedSliceAdd",
       .inputs = {x, any_complex({2, 2}), lists({2, 3}), lists({0, 2}), lists({2, 0}),
                  lists({1, -1})},
       .differentiate = {0, 1}},
      {.op = "Pad",
       .inputs = {x},
       .attrs = {{"paddings", ints({0, 1, 2, 0})}},
       .differentiate = {0}},
      {.op = "Pad",
       .inputs = {c64({1}, {{1, 2}})},
       .attrs = {{"paddings", ints({1, 1})}, {"value", 0.5}},
       .want = {c64({3}, {0.5f, {1, 2}, 0.5f})}},
      {.op = "Pad", .inputs = {x}, .attrs = {{"paddings", ints({1, -1, 0, 0})}}, .error = "-1"},
      {.op = "Tile", .inputs = {x}, .attrs = {{"multiples", ints({2, 3})}}, .differentiate = {0}},
      {.op = "TileGrad",
       .inputs = {any_complex({4}), lists({2})},
       .attrs = {{"multiples", ints({2})}},
       .differentiate = {0}},
      {.op = "Reverse", .inputs = {x}, .attrs = {{"axes", ints({1})}}, .differentiate = {0}},
      {.op = "Gather",
       .inputs = {x, i64({3}, {1, 0, 1})},
       .attrs = {{"axis", 0}},
       .differentiate = {0}},
      {.op = "Gather",
       .inputs = {x, i64({2, 1}, {2, 2})},
       .attrs = {{"axis", 1}},
       .differentiate = {0}},
      {.op = "GatherGrad",
       .inputs = {c128({3}, {1.0 + 1i, 2i, 3}), i64({3}, {1, 0, 1}), lists({2})},
       .want = {c128({2}, {2i, 4.0 + 1i})}},
      {.op = "GatherGrad",
       .inputs = {any_complex({2, 0}), i64({2}, {1, 0}), lists({2, 0})},
       .want = {any_complex({2, 0})}},
      {.op = "GatherAdd",
       .inputs = {x, any_complex({2, 2}), i64({2}, {2, 2}), lists({2, 3})},
       .attrs = {{"axis", 1}},
       .differentiate = {0, 1}},
      {.op = "GatherNd", .inputs = {x, i64({2, 2}, {0, 1, 0, 1})}, .differentiate = {0}},
      {.op = "ScatterNd",
       .inputs = {i64({3, 1}, {1, 0, 1}), c64({3}, {{1, 1}, {0, 2}, 3}), lists({2})},
       .want = {c64({2}, {{0, 2}, {4, 1}})}},
      {.op = "UnsortedSegmentSum",
       .inputs = {x, i64({2}, {1, 1}), Tensor::scalar<std::int64_t>(3)},
       .differentiate = {0}},
      {.op = "TakeAlong", .inputs = {x, i64({2, 2}, {2, 2, 0, 1})}, .differentiate = {0}},
      {.op = "BroadcastTo", .inputs = {any_complex({3}), lists({2, 3})}, .differentiate = {0}},
      {.op = "Fill", .inputs = {lists({2, 2}), any_complex({})}, .differentiate = {1}},
      {.op = "Select",
       .inputs = {bools({3}, {true, false, true}), x, any_complex({})},
       .differentiate = {1, 2}},
      {.op = "Squeeze", .inputs = {any_complex({2, 1})}, .differentiate = {0}},
      {.op = "ExpandDims", .inputs = {x}, .attrs = {{"axis", 1}}, .differentiate = {0}},
      {.op = "Roll",
       .inputs = {x},
       .attrs = {{"shift", ints({1})}, {"axes", ints({1})}},
       .differentiate = {0}},
  };
});

const AddCases complex_products([] {
  Cases rows;
  for (const bool ta : {false, true})
    for (const bool tb : {false, true}) {
      const AttrMap turned{{"transpose_a", ta}, {"transpose_b", tb}};
      rows.push_back({.op = "MatMul",
                      .inputs = {any_complex(ta ? Shape{3, 2} : Shape{2, 3}),
                                 any_complex(tb ? Shape{4, 3} : Shape{3, 4})},
                      .attrs = turned,
                      .differentiate = {0, 1}});
      rows.push_back({.op = "BatchMatMul",
                      .inputs = {any_complex(ta ? Shape{2, 3, 2} : Shape{2, 2, 3}),
                                 any_complex(tb ? Shape{4, 3} : Shape{3, 4})},
                      .attrs = turned,
                      .differentiate = {0, 1}});
      // Large enough for several chunks.
      rows.push_back({.op = "MatMul",
                      .inputs = {any_complex({150, 150}), any_complex({150, 150})},
                      .attrs = turned});
    }
  const Tensor a = c128({1, 2}, {1.0 + 1i, 2i}), b = c128({2, 1}, {1i, 3.0 - 1i});
  const Tensor product = c128({1, 1}, {1.0 + 7i});
  rows.push_back({.op = "MatMul", .inputs = {a, b}, .want = {product}});
  rows.push_back({.op = "MatMul",
                  .inputs = {a, a},
                  .attrs = {{"transpose_a", true}},
                  .want = {c128({2, 2}, {2i, -2.0 + 2i, -2.0 + 2i, -4})}});
  rows.push_back({.op = "BatchMatMul", .inputs = {a, b}, .want = {product}});
  rows.push_back({.op = "MatMul",
                  .inputs = {c64({1, 2}, {{1, 1}, {0, 2}}), c64({2, 1}, {{0, 1}, {3, -1}})},
                  .want = {c64({1, 1}, {{1, 7}})}});
  for (const char* op : {"MatMul", "BatchMatMul"}) {
    rows.push_back({.op = op,
                    .inputs = {any_complex({2, 0}), any_complex({0, 3})},
                    .want = {Tensor::zeros(DType::c128, {2, 3}).value()}});
    rows.push_back({.op = op,
                    .inputs = {any_complex({0, 2}), any_complex({2, 3})},
                    .want = {any_complex({0, 3})}});
    rows.push_back({.op = op, .inputs = {any_complex({2, 3}), any_complex({2, 3})}, .error = "2"});
    rows.push_back(
        {.op = op, .inputs = {any_complex({2, 3}), any({3, 2})}, .error = "expected c128"});
  }
  return rows;
});

}  // namespace
}  // namespace troupe::test
