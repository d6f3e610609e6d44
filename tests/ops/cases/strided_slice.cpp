// A list of indices, ranges and marks. x is [[1, 2, 3], [4, 5, 6]] where values matter.
#include "tests/ops/kernels/conformance.hpp"

namespace troupe::test {
namespace {

constexpr std::int64_t kMost = INT64_MAX, kLeast = INT64_MIN;

OpCase sliced(Tensor x, std::initializer_list<std::int64_t> begin,
              std::initializer_list<std::int64_t> end, std::initializer_list<std::int64_t> strides,
              AttrMap masks = {}) {
  const Shape n{std::int64_t(begin.size())};
  return {.op = "StridedSlice",
          .inputs = {std::move(x), i64(n, begin), i64(Shape{std::int64_t(end.size())}, end),
                     i64(Shape{std::int64_t(strides.size())}, strides)},
          .attrs = std::move(masks)};
}
OpCase gives(OpCase row, Tensor want, bool differentiate = true) {
  row.want = {std::move(want)};
  if (differentiate) row.differentiate = {0};
  return row;
}
OpCase fails(OpCase row, std::string error) {
  row.error = std::move(error);
  return row;
}

const AddCases slices([] {
  const Tensor x = f64({2, 3}, {1, 2, 3, 4, 5, 6});
  const Tensor cube = any({3, 4, 5});
  return Cases{
      // x[0:2, 1:3], x[1:2], x[:, ::2]
      gives(sliced(x, {0, 1}, {2, 3}, {1, 1}), f64({2, 2}, {2, 3, 5, 6})),
      gives(sliced(x, {1}, {2}, {1}), f64({1, 3}, {4, 5, 6})),
      gives(sliced(x, {0, 0}, {0, 0}, {1, 2}, {{"begin_mask", 3}, {"end_mask", 3}}),
            f64({2, 2}, {1, 3, 4, 6})),
      // x[::-1, 2:0:-1], x[-1:, :-1]
      gives(sliced(x, {7, 2}, {7, 0}, {-1, -1}, {{"begin_mask", 1}, {"end_mask", 1}}),
            f64({2, 2}, {6, 5, 3, 2})),
      gives(sliced(x, {-1, 0}, {0, -1}, {1, 1}, {{"begin_mask", 2}, {"end_mask", 1}}),
            f64({1, 2}, {4, 5})),
      // x[1], x[:, -1], x[0, 2]
      gives(sliced(x, {1}, {0}, {1}, {{"shrink_axis_mask", 1}}), f64({3}, {4, 5, 6})),
      gives(sliced(x, {0, -1}, {0, 0}, {1, 1},
                   {{"begin_mask", 1}, {"end_mask", 1}, {"shrink_axis_mask", 2}}),
            f64({2}, {3, 6})),
      gives(sliced(x, {0, 2}, {0, 0}, {1, 1}, {{"shrink_axis_mask", 3}}), f64({}, {3})),
      // x[newaxis], x[..., newaxis], x[newaxis, 1, newaxis], x[..., 0], x[1, ...]
      gives(sliced(x, {0}, {0}, {1}, {{"new_axis_mask", 1}}), f64({1, 2, 3}, {1, 2, 3, 4, 5, 6})),
      gives(sliced(x, {0, 0}, {0, 0}, {1, 1}, {{"ellipsis_mask", 1}, {"new_axis_mask", 2}}),
            f64({2, 3, 1}, {1, 2, 3, 4, 5, 6})),
      gives(sliced(x, {0, 1, 0}, {0, 0, 0}, {1, 1, 1},
                   {{"new_axis_mask", 5}, {"shrink_axis_mask", 2}}),
            f64({1, 1, 3}, {4, 5, 6})),
      gives(sliced(x, {0, 0}, {0, 0}, {1, 1}, {{"ellipsis_mask", 1}, {"shrink_axis_mask", 2}}),
            f64({2}, {1, 4})),
      gives(sliced(x, {1, 0}, {0, 0}, {1, 1}, {{"ellipsis_mask", 2}, {"shrink_axis_mask", 1}}),
            f64({3}, {4, 5, 6})),
      // An ellipsis may stand for nothing, and goes before the other marks of its entry.
      gives(sliced(x, {0, 0, 1}, {0, 0, 0}, {1, 1, 1},
                   {{"ellipsis_mask", 1}, {"new_axis_mask", 1}, {"shrink_axis_mask", 7}}),
            f64({}, {2})),
      // Nothing, and all of it.
      gives(sliced(x, {1}, {1}, {1}), f64({0, 3}, {}), false),
      gives(sliced(x, {2, 2}, {0, 3}, {1, -1}), f64({0, 0}, {}), false),
      gives(sliced(x, {}, {}, {}), x),
      gives(sliced(f64({}, {5}), {}, {}, {}), f64({}, {5})),
      gives(sliced(any({0, 3}), {0}, {5}, {2}), f64({0, 3}, {}), false),
      // Bounds and strides beyond everything.
      gives(sliced(x, {kLeast, kLeast}, {kMost, kMost}, {kMost, 1}), f64({1, 3}, {1, 2, 3})),
      gives(sliced(x, {kMost, kMost}, {kLeast, kLeast}, {kLeast, -2}), f64({1, 2}, {6, 4})),
      // Larger ones.
      {.op = "StridedSlice",
       .inputs = {cube, i32({3}, {2, 0, 4}), i32({3}, {0, 0, 0}), i32({3}, {-1, 1, -3})},
       .attrs = {{"begin_mask", 2}, {"end_mask", 2}},
       .differentiate = {0}},
      sliced(any({300, 300}), {1, 299}, {300, 0}, {3, -2}),
      gives(
          {.op = "StridedSlice",
           .inputs = {strings({3}, {"a", "b", "c"}), i64({1}, {2}), i64({1}, {0}), i64({1}, {-1})}},
          strings({2}, {"c", "b"}), false),
      // Refused.
      fails(sliced(x, {0}, {2}, {0}), "stride is 0"),
      fails(sliced(x, {2}, {0}, {1}, {{"shrink_axis_mask", 1}}), "index 2"),
      fails(sliced(x, {-3}, {0}, {1}, {{"shrink_axis_mask", 1}}), "index -3"),
      fails(sliced(any({0}), {0}, {0}, {1}, {{"shrink_axis_mask", 1}}), "index 0"),
      fails(sliced(x, {0, 0, 0}, {1, 1, 1}, {1, 1, 1}), "3 indices and ranges"),
      fails(sliced(x, {0, 0}, {1, 1}, {1, 1}, {{"ellipsis_mask", 3}}), "ellipsis"),
      fails(sliced(x, {0, 0}, {1}, {1, 1}), "length"),
      fails(sliced(x, {0, 0, 0, 0, 0, 0, 0, 0}, {0, 0, 0, 0, 0, 0, 0, 0}, {1, 1, 1, 1, 1, 1, 1, 1},
                   {{"new_axis_mask", 255}}),
            "rank"),
      fails(sliced(x, {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0},
                   {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0},
                   {1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1}),
            "17 entries"),
  };
});

const AddCases strided_slopes([] {
  const AttrMap masks{{"shrink_axis_mask", 1}};
  const Tensor shape = i64({2}, {2, 3}), from = i64({2}, {1, 2}), to = i64({2}, {0, 0}),
               step = i64({2}, {1, -2});
  return Cases{
      {.op = "StridedSliceGrad",
       .inputs = {f64({1}, {7}), shape, from, to, step},
       .attrs = masks,
       .differentiate = {0},
       .want = {f64({2, 3}, {0, 0, 0, 0, 0, 7})}},
      {.op = "StridedSliceAdd",
       .inputs = {f64({2, 3}, {1, 2, 3, 4, 5, 6}), f64({1}, {7}), shape, from, to, step},
       .attrs = masks,
       .differentiate = {0, 1},
       .want = {f64({2, 3}, {1, 2, 3, 4, 5, 13})}},
      {.op = "StridedSliceAdd",
       .inputs = {f64({4}, {1, 2, 3, 4}), f64({2}, {10, 20}), i64({1}, {4}), i64({1}, {3}),
                  i64({1}, {0}), i64({1}, {-2})},
       .differentiate = {0, 1},
       .want = {f64({4}, {1, 22, 3, 14})}},
      {.op = "StridedSliceAdd",
       .inputs = {any({2, 3}), any({2, 2}), shape, i64({1}, {0}), i64({1}, {2}), i64({1}, {1})},
       .error = "dy is"},
      {.op = "StridedSliceGrad",
       .inputs = {any({2, 2}), shape, i64({1}, {0}), i64({1}, {2}), i64({1}, {1})},
       .error = "dy is"},
  };
});

}  // namespace
}  // namespace troupe::test
