// Sums of segments over the root of the number of their rows.
#include "ops/api/segments.hpp"

#include "tests/ops/kernels/reference.hpp"

using namespace troupe;
using namespace troupe::test;

namespace {

// Of rows of two columns.
Numbers over_roots(const Numbers& x, const std::vector<std::size_t>& ids, std::size_t segments) {
  Numbers sums(2 * segments), counts(segments);
  for (std::size_t i = 0; i < ids.size(); ++i) {
    ++counts[ids[i]];
    for (std::size_t k = 0; k < 2; ++k) sums[2 * ids[i] + k] += x[2 * i + k];
  }
  for (std::size_t s = 0; s < segments; ++s)
    for (std::size_t k = 0; k < 2; ++k) sums[2 * s + k] /= std::sqrt(std::max(1.0, counts[s]));
  return sums;
}

}  // namespace

TEST_CASE("segments are divided by the root of their number of rows") {
  for (const PartialShape& known : {PartialShape{5, 2}, PartialShape{-1, -1}}) {
    Graph g;
    const Output x = placeholder<double>(g, known);
    const Numbers values = draw(3, 10);
    Interpreter run(g);
    const auto compare = [&](const Output& y, const std::vector<std::size_t>& ids,
                             std::size_t segments) {
      Compared{g,
               y,
               {x},
               {values},
               [&](const std::vector<Numbers>& in) { return over_roots(in[0], ids, segments); }}
          .check(run, {{x.node(), tensor({5, 2}, values)}});
    };
    const Output sorted = constant(g, Tensor::of<std::int64_t>(Shape{5}, {0, 0, 0, 2, 2}));
    compare(segment_sqrt_n(x, sorted), {0, 0, 0, 2, 2}, 3);
    const Output any_order = constant(g, Tensor::of<std::int32_t>(Shape{5}, {3, 0, 3, 3, 3}));
    compare(unsorted_segment_sqrt_n(x, any_order, constant(g, std::int64_t{5})), {3, 0, 3, 3, 3},
            5);
  }
}

TEST_CASE("narrow segments are computed in f32 and rounded once") {
  // 3,000 rows: their number is none that bf16 has.
  Graph g;
  const Output ids = zeros(g, {3000}, DType::i64), rows = ones(g, {3000, 1}, DType::bf16);
  Interpreter run(g);
  const Tensor y = run.run({cast<float>(segment_sqrt_n(rows, ids))})[0];
  CHECK(y.item<float>() == float(bfloat16(std::sqrt(3000.0f))));
}

TEST_CASE("segments that cannot be are refused where they are written") {
  Graph g;
  const Output x = ones(g, {3, 2}), ids = constant(g, {std::int64_t{0}, std::int64_t{1}});
  CHECK_THROWS_WITH_AS(segment_sqrt_n(x, Output()), doctest::Contains("segment_sqrt_n"), Error);
  CHECK_THROWS_AS(segment_sqrt_n(x, ids), Error);
  CHECK_THROWS_AS(unsorted_segment_sqrt_n(zeros(g, {2}, DType::i64), ids, ids), Error);
}
