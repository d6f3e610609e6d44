// Constants, shapes, and everything that moves elements without computing.
#include <limits>

#include "tests/ops/conformance.hpp"

namespace troupe::test {
namespace {

const DType kF64 = DType::f64;
constexpr std::int64_t kHuge = std::int64_t{1} << 62;

const AddCases constants([] {
  Tensor x = f64({2, 2}, {1, 2, 3, 4});
  return Cases{
      {.op = "Const", .attrs = {{"T", kF64}, {"value", x}}, .want = {x}},
      {.op = "Const", .attrs = {{"T", DType::f32}, {"value", x}}, .error = "f64"},
      {.op = "Fill",
       .inputs = {i64({2}, {2, 3}), f64({}, {7})},
       .differentiate = {1},
       .want = {f64({2, 3}, {7, 7, 7, 7, 7, 7})}},
      {.op = "Fill",
       .inputs = {i32({1}, {2}), strings({}, {"a"})},
       .want = {strings({2}, {"a", "a"})}},
      {.op = "Fill", .inputs = {i64({1}, {-1}), f64({}, {7})}, .error = "negative"},
      {.op = "Fill", .inputs = {i64({2}, {kHuge, 4}), f64({}, {7})}, .error = "2^6"},
      {.op = "Fill",
       .inputs = {i64({9}, {1, 1, 1, 1, 1, 1, 1, 1, 1}), f64({}, {7})},
       .error = "rank"},
      {.op = "ZerosLike", .inputs = {x}, .want = {f64({2, 2}, {0, 0, 0, 0})}},
      {.op = "OnesLike", .inputs = {bools({2}, {false, true})}, .want = {bools({2}, {true, true})}},
      {.op = "Range",
       .inputs = {i32({}, {2}), i32({}, {9}), i32({}, {3})},
       .want = {i32({3}, {2, 5, 8})}},
      {.op = "Range",
       .inputs = {f64({}, {1}), f64({}, {0}), f64({}, {-0.25})},
       .want = {f64({4}, {1, 0.75, 0.5, 0.25})}},
      {.op = "Range",
       .inputs = {f64({}, {1}), f64({}, {0.1}), f64({}, {-0.25})},
       .differentiate = {0, 2}},
      {.op = "Range", .inputs = {i64({}, {5}), i64({}, {5}), i64({}, {1})}, .want = {i64({0}, {})}},
      {.op = "Range", .inputs = {i64({}, {0}), i64({}, {5}), i64({}, {0})}, .error = "delta"},
      {.op = "Range", .inputs = {f64({}, {0}), f64({}, {1e300}), f64({}, {1})}, .error = "range"},
  };
});

const AddCases shapes([] {
  Tensor x = any({2, 3});
  Tensor ten = any({1, 2, 1, 3});
  return Cases{
      {.op = "Shape", .inputs = {x}, .want = {i64({2}, {2, 3})}},
      {.op = "Shape",
       .inputs = {x},
       .attrs = {{"out_type", DType::i32}},
       .want = {i32({2}, {2, 3})}},
      {.op = "Rank", .inputs = {x}, .want = {i64({}, {2})}},
      {.op = "Size", .inputs = {x}, .want = {i64({}, {6})}},
      {.op = "Reshape", .inputs = {x, i64({2}, {3, -1})}, .differentiate = {0}},
      {.op = "Reshape", .inputs = {f64({1}, {5}), i64({0}, {})}, .want = {f64({}, {5})}},
      {.op = "Reshape", .inputs = {any({0, 3}), i32({2}, {0, 7})}},
      {.op = "Reshape", .inputs = {x, i64({1}, {5})}, .error = "elements"},
      {.op = "Reshape", .inputs = {x, i64({2}, {-1, -1})}, .error = "-1"},
      {.op = "Reshape", .inputs = {x, i64({2}, {-2, 3})}, .error = "negative"},
      {.op = "Reshape", .inputs = {x, i64({2}, {4, -1})}, .error = "elements"},
      {.op = "Reshape", .inputs = {x, i64({3}, {kHuge, kHuge, 4})}, .error = "2^63"},
      {.op = "Reshape", .inputs = {x, i64({9}, {6, 1, 1, 1, 1, 1, 1, 1, 1})}, .error = "rank"},
      {.op = "ExpandDims", .inputs = {x}, .attrs = {{"axis", 1}}, .differentiate = {0}},
      {.op = "ExpandDims",
       .inputs = {f64({}, {5})},
       .attrs = {{"axis", -1}},
       .want = {f64({1}, {5})}},
      {.op = "ExpandDims", .inputs = {x}, .attrs = {{"axis", 3}}, .error = "axis"},
      {.op = "ExpandDims",
       .inputs = {any({1, 1, 1, 1, 1, 1, 1, 1})},
       .attrs = {{"axis", 0}},
       .error = "rank"},
      {.op = "Squeeze", .inputs = {ten}, .differentiate = {0}},
      {.op = "Squeeze", .inputs = {ten}, .attrs = {{"axes", ints({-2})}}, .differentiate = {0}},
      {.op = "Squeeze", .inputs = {ten}, .attrs = {{"axes", ints({1})}}, .error = "not 1"},
      {.op = "Squeeze", .inputs = {ten}, .attrs = {{"axes", ints({4})}}, .error = "axis"},
      {.op = "Identity", .inputs = {x}, .differentiate = {0}, .want = {x}},
      {.op = "StopGradient", .inputs = {x}, .want = {x}},
      {.op = "NoOp"},
  };
});

const AddCases joins([] {
  Tensor a = f64({2, 1}, {1, 2}), b = f64({2, 2}, {3, 4, 5, 6});
  return Cases{
      {.op = "Concat",
       .inputs = {a, b},
       .attrs = {{"axis", 1}},
       .differentiate = {0, 1},
       .want = {f64({2, 3}, {1, 3, 4, 2, 5, 6})}},
      {.op = "Concat", .inputs = {any({1, 3}), any({2, 3}), any({0, 3})}, .differentiate = {0, 1}},
      {.op = "Concat", .inputs = {any({2, 3})}, .attrs = {{"axis", -1}}, .differentiate = {0}},
      {.op = "Concat",
       .inputs = {strings({1}, {"a"}), strings({1}, {"b"})},
       .want = {strings({2}, {"a", "b"})}},
      {.op = "Concat", .inputs = {any({300, 200}), any({300, 60})}, .attrs = {{"axis", 1}}},
      {.op = "Concat", .inputs = {a, b}, .attrs = {{"axis", 0}}, .error = "cannot join"},
      {.op = "Concat", .inputs = {a, b}, .attrs = {{"axis", 2}}, .error = "axis"},
      {.op = "Concat", .inputs = {f64({}, {1}), f64({}, {2})}, .error = "axis"},
      {.op = "ConcatGrad",
       .inputs = {any({5}), i64({1}, {2}), i64({1}, {3})},
       .differentiate = {0}},
      {.op = "ConcatGrad",
       .inputs = {any({2, 4}), i64({2}, {2, 1}), i64({2}, {2, 3})},
       .attrs = {{"axis", -1}},
       .differentiate = {0}},
      {.op = "ConcatGrad",
       .inputs = {any({5}), i64({1}, {2}), i64({1}, {2})},
       .error = "cannot come from"},
      {.op = "Split", .inputs = {any({4, 2})}, .attrs = {{"N", 2}}, .differentiate = {0}},
      {.op = "Split",
       .inputs = {any({2, 4})},
       .attrs = {{"N", 3}, {"axis", -1}, {"sizes", ints({1, 0, 3})}},
       .differentiate = {0}},
      {.op = "Split", .inputs = {any({4})}, .attrs = {{"N", 3}}, .error = "cannot split"},
      {.op = "Split",
       .inputs = {any({4})},
       .attrs = {{"N", 2}, {"sizes", ints({1, 2})}},
       .error = "sizes"},
      {.op = "Split",
       .inputs = {any({4})},
       .attrs = {{"N", 2}, {"sizes", ints({5, -1})}},
       .error = "sizes"},
      {.op = "Pack",
       .inputs = {f64({2}, {1, 2}), f64({2}, {3, 4})},
       .attrs = {{"axis", 1}},
       .differentiate = {0, 1},
       .want = {f64({2, 2}, {1, 3, 2, 4})}},
      {.op = "Pack",
       .inputs = {f64({}, {1}), f64({}, {3})},
       .differentiate = {0, 1},
       .want = {f64({2}, {1, 3})}},
      {.op = "Pack", .inputs = {any({2}), any({3})}, .error = "[3]"},
      {.op = "Pack", .inputs = {any({2}), any({2})}, .attrs = {{"axis", 2}}, .error = "axis"},
      {.op = "Unpack",
       .inputs = {f64({2, 2}, {1, 2, 3, 4})},
       .attrs = {{"N", 2}, {"axis", 1}},
       .differentiate = {0},
       .want = {f64({2}, {1, 3}), f64({2}, {2, 4})}},
      {.op = "Unpack", .inputs = {any({2, 2})}, .attrs = {{"N", 3}}, .error = "N = 3"},
  };
});

const AddCases moves([] {
  Tensor x = f64({2, 3}, {1, 2, 3, 4, 5, 6});
  return Cases{
      {.op = "Slice",
       .inputs = {x, i64({2}, {0, 1}), i64({2}, {2, -1})},
       .differentiate = {0},
       .want = {f64({2, 2}, {2, 3, 5, 6})}},
      {.op = "Slice", .inputs = {x, i32({2}, {2, 0}), i32({2}, {0, 3})}, .want = {f64({0, 3}, {})}},
      {.op = "Slice",
       .inputs = {f64({}, {1}), i64({0}, {}), i64({0}, {})},
       .differentiate = {0},
       .want = {f64({}, {1})}},
      {.op = "Slice", .inputs = {any({300, 300}), i64({2}, {1, 2}), i64({2}, {299, 290})}},
      {.op = "Slice", .inputs = {x, i64({2}, {0, 2}), i64({2}, {2, 2})}, .error = "slice"},
      {.op = "Slice", .inputs = {x, i64({2}, {-1, 0}), i64({2}, {1, 1})}, .error = "slice"},
      {.op = "Slice", .inputs = {x, i64({2}, {1, 0}), i64({2}, {INT64_MAX, 1})}, .error = "slice"},
      {.op = "Slice", .inputs = {x, i64({1}, {1}), i64({1}, {1})}, .error = "entries"},
      {.op = "SliceGrad",
       .inputs = {any({2, 1}), i32({2}, {1, 2}), i64({2}, {3, 3})},
       .differentiate = {0}},
      {.op = "SliceGrad",
       .inputs = {f64({1, 2}, {1, 2}), i64({2}, {1, 1}), i64({2}, {2, 3})},
       .differentiate = {0},
       .want = {f64({2, 3}, {0, 0, 0, 0, 1, 2})}},
      {.op = "Pad",
       .inputs = {x},
       .attrs = {{"paddings", ints({1, 0, 0, 2})}, {"value", 9.0}},
       .differentiate = {0},
       .want = {f64({3, 5}, {9, 9, 9, 9, 9, 1, 2, 3, 9, 9, 4, 5, 6, 9, 9})}},
      {.op = "Pad", .inputs = {x}, .attrs = {{"paddings", ints({1, 0})}}, .error = "paddings"},
      {.op = "Pad",
       .inputs = {x},
       .attrs = {{"paddings", ints({1, 0, -1, 0})}},
       .error = "paddings"},
      {.op = "Pad",
       .inputs = {x},
       .attrs = {{"paddings", ints({INT64_MAX, 0, 0, 0})}},
       .error = "paddings"},
      {.op = "Tile",
       .inputs = {f64({2}, {1, 2})},
       .attrs = {{"multiples", ints({3})}},
       .differentiate = {0},
       .want = {f64({6}, {1, 2, 1, 2, 1, 2})}},
      {.op = "Tile",
       .inputs = {any({2, 1, 3})},
       .attrs = {{"multiples", ints({2, 3, 1})}},
       .differentiate = {0}},
      {.op = "Tile", .inputs = {any({2, 3})}, .attrs = {{"multiples", ints({0, 2})}}},
      {.op = "Tile", .inputs = {x}, .attrs = {{"multiples", ints({2})}}, .error = "multiples"},
      {.op = "Tile", .inputs = {x}, .attrs = {{"multiples", ints({-1, 1})}}, .error = "multiple"},
      {.op = "Tile",
       .inputs = {x},
       .attrs = {{"multiples", ints({INT64_MAX, 1})}},
       .error = "multiple"},
      {.op = "TileGrad",
       .inputs = {f64({4}, {1, 2, 3, 4}), i64({1}, {2})},
       .attrs = {{"multiples", ints({2})}},
       .differentiate = {0},
       .want = {f64({2}, {4, 6})}},
      {.op = "Transpose",
       .inputs = {x},
       .differentiate = {0},
       .want = {f64({3, 2}, {1, 4, 2, 5, 3, 6})}},
      {.op = "Transpose",
       .inputs = {any({2, 3, 4})},
       .attrs = {{"perm", ints({1, -1, 0})}},
       .differentiate = {0}},
      {.op = "Transpose", .inputs = {any({70, 3, 200})}, .attrs = {{"perm", ints({2, 0, 1})}}},
      {.op = "Transpose", .inputs = {any({3, 5, 37, 2})}, .attrs = {{"perm", ints({1, 3, 0, 2})}}},
      {.op = "Transpose",
       .inputs = {any({2, 19, 3})},
       .attrs = {{"perm", ints({2, 0, 1})}},
       .differentiate = {0}},
      {.op = "Transpose", .inputs = {x}, .attrs = {{"perm", ints({0, 0})}}, .error = "twice"},
      {.op = "Transpose", .inputs = {x}, .attrs = {{"perm", ints({0})}}, .error = "perm"},
      {.op = "Transpose", .inputs = {x}, .attrs = {{"perm", ints({0, 2})}}, .error = "axis"},
      {.op = "Reverse",
       .inputs = {x},
       .attrs = {{"axes", ints({1})}},
       .differentiate = {0},
       .want = {f64({2, 3}, {3, 2, 1, 6, 5, 4})}},
      {.op = "Reverse", .inputs = {any({0, 2})}},
      {.op = "Reverse", .inputs = {x}, .attrs = {{"axes", ints({2})}}, .error = "axis"},
  };
});

const AddCases gathers([] {
  Tensor p = f64({3, 2}, {1, 2, 3, 4, 5, 6});
  return Cases{
      {.op = "Gather",
       .inputs = {p, i32({3}, {2, 0, 2})},
       .differentiate = {0},
       .want = {f64({3, 2}, {5, 6, 1, 2, 5, 6})}},
      {.op = "Gather", .inputs = {any({4}), i64({2, 2}, {0, 3, 3, 1})}, .differentiate = {0}},
      {.op = "Gather",
       .inputs = {strings({2}, {"a", "b"}), i64({}, {1})},
       .want = {strings({}, {"b"})}},
      {.op = "Gather", .inputs = {any({5, 700}), i64({4}, {4, 3, 3, 0})}},
      {.op = "Gather", .inputs = {p, i64({2}, {0, 3})}, .error = "indices[1] = 3"},
      {.op = "Gather", .inputs = {p, i64({1}, {-1})}, .error = "indices[0] = -1"},
      {.op = "Gather", .inputs = {f64({}, {1}), i64({1}, {0})}, .error = "rank"},
      {.op = "GatherGrad", .inputs = {any({4, 700}), i64({4}, {1, 1, 0, 1}), i64({2}, {2, 700})}},
      {.op = "GatherGrad",
       .inputs = {any({4, 2}), i32({4}, {1, 1, 0, 1}), i64({2}, {3, 2})},
       .differentiate = {0}},
      {.op = "GatherGrad",
       .inputs = {any({4, 2}), i64({4}, {1, 1, 0, 1}), i64({2}, {2, 3})},
       .error = "dy is"},
      {.op = "GatherGrad",
       .inputs = {any({1, 2}), i64({1}, {5}), i64({2}, {2, 2})},
       .error = "indices[0] = 5"},
      {.op = "UnsortedSegmentSum",
       .inputs = {f64({3, 1}, {1, 2, 3}), i32({3}, {1, 0, 1}), i64({}, {3})},
       .differentiate = {0},
       .want = {f64({3, 1}, {2, 4, 0})}},
      {.op = "UnsortedSegmentSum",
       .inputs = {any({3}), i32({2}, {1, 0}), i64({}, {3})},
       .error = "segment_ids"},
      {.op = "UnsortedSegmentSum",
       .inputs = {any({1}), i32({1}, {0}), i64({}, {-1})},
       .error = "num_segments"},
      {.op = "OneHot",
       .inputs = {i64({3}, {1, -1, 0})},
       .attrs = {{"depth", 2}},
       .want = {f32({3, 2}, {0, 1, 0, 0, 1, 0})}},
      {.op = "OneHot",
       .inputs = {i32({}, {1})},
       .attrs = {{"depth", 2}, {"T", DType::bool_}},
       .want = {bools({2}, {false, true})}},
      {.op = "OneHot", .inputs = {i64({1}, {1})}, .attrs = {{"depth", -2}}, .error = "depth"},
      {.op = "OneHot",
       .inputs = {i64({4}, {0, 0, 0, 0})},
       .attrs = {{"depth", kHuge}},
       .error = "2^6"},
  };
});

const AddCases casts([] {
  Tensor x = f64({5}, {1.7, -1.7, 1e30, -1e30, std::numeric_limits<double>::quiet_NaN()});
  return Cases{
      {.op = "Cast",
       .inputs = {x},
       .attrs = {{"to", DType::i32}},
       .want = {i32({5}, {1, -1, INT32_MAX, INT32_MIN, 0})}},
      {.op = "Cast",
       .inputs = {x},
       .attrs = {{"to", DType::i64}},
       .want = {i64({5}, {1, -1, INT64_MAX, INT64_MIN, 0})}},
      {.op = "Cast",
       .inputs = {f64({2}, {0, -0.5})},
       .attrs = {{"to", DType::bool_}},
       .want = {bools({2}, {false, true})}},
      {.op = "Cast",
       .inputs = {bools({2}, {false, true})},
       .attrs = {{"to", DType::f32}},
       .want = {f32({2}, {0, 1})}},
      {.op = "Cast",
       .inputs = {i64({1}, {(std::int64_t{1} << 32) + 5})},
       .attrs = {{"to", DType::i32}},
       .want = {i32({1}, {5})}},
      {.op = "Cast", .inputs = {any({3})}, .attrs = {{"to", DType::f64}}, .differentiate = {0}},
      {.op = "Cast",
       .inputs = {strings({1}, {"1"})},
       .attrs = {{"to", DType::f64}},
       .error = "string"},
  };
});

const AddCases watchers([] {
  Tensor bad = f64({2}, {1, std::numeric_limits<double>::infinity()});
  return Cases{
      {.op = "Assert", .inputs = {bools({}, {true})}, .attrs = {{"message", "never"}}},
      {.op = "Assert",
       .inputs = {bools({}, {false})},
       .attrs = {{"message", "loss must fall"}},
       .error = "loss must fall"},
      {.op = "Assert", .inputs = {bools({2}, {true, true})}, .error = "condition"},
      {.op = "Print", .inputs = {any({2})}, .attrs = {{"limit", 0}}, .differentiate = {0}},
      {.op = "CheckNumerics", .inputs = {any({3})}, .differentiate = {0}},
      {.op = "CheckNumerics",
       .inputs = {bad},
       .attrs = {{"message", "logits"}},
       .error = "logits: element 1"},
  };
});

// Values are checked in random_test.cpp; here: shapes, same bits on lanes and devices.
const AddCases draws([] {
  Cases rows;
  for (const char* op : {"RandomUniform", "RandomStandardNormal", "TruncatedNormal"})
    for (DType type : {DType::f32, DType::f64, DType::f16})
      rows.push_back({.op = op, .attrs = {{"T", type}, {"shape", PartialShape{7, 9'001}}}});
  rows.push_back({.op = "RandomUniformLike", .inputs = {any({7, 9'001})}});
  rows.push_back({.op = "RandomUniformLike", .inputs = {f32({0}, {})}, .attrs = {{"high", 2.0}}});
  rows.push_back(
      {.op = "RandomUniformInt", .attrs = {{"high", 10}, {"shape", PartialShape{70'001}}}});
  rows.push_back({.op = "RandomUniformInt",
                  .attrs = {{"high", 0}, {"shape", PartialShape{}}},
                  .error = "no integer"});
  rows.push_back({.op = "RandomUniformInt",
                  .attrs = {{"T", DType::i32}, {"high", kHuge}, {"shape", PartialShape{1}}},
                  .error = "i32"});
  rows.push_back({.op = "RandomUniform", .attrs = {{"shape", PartialShape{-1}}}, .error = "shape"});
  rows.push_back(
      {.op = "RandomUniform", .attrs = {{"shape", PartialShape{kHuge, kHuge}}}, .error = "2^6"});
  return rows;
});

}  // namespace
}  // namespace troupe::test
