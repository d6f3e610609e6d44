// What is known of shapes in bodies of functions.
#include <doctest/doctest.h>

#include "ops/api.hpp"
#include "ops/graph_api.hpp"

using namespace troupe;

TEST_CASE("a constant shape around a body is known in it") {
  Graph g;
  Output four = constant(g, Tensor::of<std::int64_t>({2}, {2, 2})),
         n = constant(g, std::int64_t{2});
  Output x = placeholder<double>(g, {4}, "four");
  while_loop(
      std::tuple{constant(g, 0), reshape(x, four)}, [&](Output i, Output) { return i < 2; },
      [&](Output i, Output v) {
        Output next = reshape(v * 2.0, four);
        CHECK(next.shape() == PartialShape{2, 2});
        cond(
            i < 1,
            [&] {
              CHECK(reshape(v, four * n - 2).shape() == PartialShape{2, 2});
              return v;
            },
            [&] { return v; });
        return std::tuple{i + 1, next};
      });
}
