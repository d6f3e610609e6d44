// Attention with a cache against attention of the whole. tests/actors/control/decoding_test.cpp
// decodes in a loop and with variables.
#include "tests/ops/kernels/reference.hpp"

using namespace troupe;
using namespace troupe::test;

namespace {

struct AttentionRoot : nn::Module {
  using Module::Module;
};

// [batch, time, size] from position `from` on.
Output positions_of(Output x, std::int64_t from, std::int64_t count) {
  return x[{whole, range(from, from + count)}];
}

}  // namespace

TEST_CASE("attention scales scores as it is told") {
  Graph g;
  Output q = constant(g, tensor({1, 3, 2}, draw(1, 6))),
         k = constant(g, tensor({1, 4, 2}, draw(2, 8))),
         v = constant(g, tensor({1, 4, 3}, draw(3, 12)));
  Interpreter run(g);
  const auto made = run.run({nn::scaled_dot_product_attention(q, k, v, {.scale = 0.3}),
                             nn::scaled_dot_product_attention(q * (0.3 * std::sqrt(2.0)), k, v)});
  check_near(made[0], numbers(made[1]));
  CHECK_THROWS_AS(nn::scaled_dot_product_attention(q, k, v, {.scale = std::nan("")}), Error);
}

TEST_CASE("attention with a cache equals causal attention of the whole, with its gradients") {
  Graph g;
  AttentionRoot root{g.scope("net")};
  nn::MultiHeadAttention layer{root, "layer", 4, 2, {.dtype = DType::f64}};
  Output x = placeholder<double>(g, {-1, 6, 4});
  Output all = layer(x, x, x, {.causal = true});
  // Two positions, one, and three, in memory for eight.
  nn::KeyValueCache cache = layer.empty_cache(x, 8);
  CHECK(cache.keys.shape() == PartialShape{-1, 2, 8, 2});
  std::vector<Output> parts;
  std::int64_t at = 0;
  for (std::int64_t count : {2, 1, 3}) {
    auto [y, next] = layer(positions_of(x, at, count), cache);
    parts.push_back(y);
    cache = next;
    at += count;
  }
  Output joined = concat(parts, 1);
  CHECK(cache.keys.shape() == PartialShape{-1, 2, 8, 2});
  const Numbers xs = draw(1, 48);
  const std::map<NodeId, Tensor> feeds{{x.node(), tensor({2, 6, 4}, xs)}};
  const Output w = constant(g, tensor({2, 6, 4}, draw(2, 48)));
  const auto want = gradients(sum(square(all) * w), {x}),
             got = gradients(sum(square(joined) * w), {x});
  Interpreter run(g);
  run.init();
  const auto made = run.run({joined, all, got[0], want[0], cache.length}, {}, feeds);
  check_near(made[0], numbers(made[1]));
  check_near(made[2], numbers(made[3]));
  CHECK(made[4].item<std::int64_t>() == 6);
}

TEST_CASE("attention with a cache and a mask looks only where both allow it") {
  Graph g;
  const Numbers q = draw(1, 4), k = draw(2, 4), v = draw(3, 4);
  const auto row = [&](const Numbers& of, std::size_t i) {
    return constant(g, tensor({1, 1, 2}, {of[2 * i], of[2 * i + 1]}));
  };
  const auto zero = constant<std::int64_t>(g, 1);
  nn::KeyValueCache cache = nn::KeyValueCache::empty(g, {zero}, 3, 2, 2, DType::f64);
  cache = nn::scaled_dot_product_attention(row(q, 0), row(k, 0), row(v, 0), cache).cache;
  // Not the first position: only the second is left, as the third is not there yet.
  Output open = constant(g, Tensor::of<bool>(Shape{1, 3}, {false, true, true}));
  const auto second =
      nn::scaled_dot_product_attention(row(q, 1), row(k, 1), row(v, 1), cache, {.mask = open});
  Interpreter run(g);
  check_near(run.run({second.y})[0], {v[2], v[3]});
}

TEST_CASE("a cache that cannot be, or that is full, is refused") {
  Graph g;
  AttentionRoot root{g.scope("net")};
  nn::MultiHeadAttention layer{root, "layer", 4, 2, {.dtype = DType::f64}};
  Output x = constant(g, tensor({1, 3, 4}, draw(1, 12)));
  CHECK_THROWS_AS(layer.empty_cache(x, 0), Error);
  CHECK_THROWS_AS(layer(x, layer.empty_cache(Output(), 4)), Error);
  CHECK_THROWS_AS(layer(x, nn::KeyValueCache{}), Error);
  // Three positions in memory for two.
  CHECK_THROWS_AS(layer(x, layer.empty_cache(x, 2)), Error);
}
