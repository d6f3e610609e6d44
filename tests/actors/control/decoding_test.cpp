// Decoding step by step with a cache of keys and values: in a loop, and with variables from run to
// run, against attention of the whole.
#include <doctest/doctest.h>

#include <cmath>

#include "ops/api.hpp"
#include "tests/actors/support/sessions.hpp"

using namespace troupe;
using namespace troupe::test;

namespace {

constexpr std::int64_t kTime = 5, kBatch = 2, kSize = 4;

struct Root : nn::Module {
  using Module::Module;
};

Tensor drawn() {
  Tensor x = Tensor::make(DType::f64, {kBatch, kTime, kSize}).value();
  for (std::int64_t i = 0; i < x.elements(); ++i)
    x.mutable_data<double>()[i] = std::sin(double(3 * i + 1));
  return x;
}

void check_near(const Tensor& got, const Tensor& want) {
  REQUIRE(got.shape() == want.shape());
  for (std::int64_t i = 0; i < want.elements(); ++i)
    CHECK(got.data<double>()[i] == doctest::Approx(want.data<double>()[i]).epsilon(1e-12));
}

}  // namespace

TEST_CASE("a decoding loop with a cache computes what causal attention of the whole does") {
  for (const Place& place : kPlaces) {
    CAPTURE(place.name);
    Graph g;
    Root root{g.scope("net")};
    nn::MultiHeadAttention layer{root, "layer", kSize, 2, {.dtype = DType::f64}};
    Output x = constant(g, drawn());
    Output all = layer(x, x, x, {.causal = true});
    const auto [keys, values, length] = layer.empty_cache(x, 8);
    auto [last, steps] =
        scan(transpose(x, {1, 0, 2}), std::tuple{keys, values, length},
             [&](Output k, Output v, Output n, Output now) {
               const auto [y, next] = layer(expand_dims(now, 1), nn::KeyValueCache{k, v, n});
               return std::pair{std::tuple{next.keys, next.values, next.length}, squeeze(y, {1})};
             });
    Output decoded = transpose(steps, {1, 0, 2});
    const auto want = gradients(sum(square(all)), {x}), got = gradients(sum(square(decoded)), {x});
    PlacedSession s(g, place);
    s->init();
    const auto made = s->run({decoded, all, got[0], want[0], std::get<2>(last)});
    check_near(made[0], made[1]);
    check_near(made[2], made[3]);
    CHECK(made[4].item<std::int64_t>() == kTime);
  }
}

TEST_CASE("a cache in variables goes on from run to run") {
  Graph g;
  Root root{g.scope("net")};
  nn::MultiHeadAttention layer{root, "layer", kSize, 2, {.dtype = DType::f64}};
  Output x = constant(g, drawn());
  Output all = layer(x, x, x, {.causal = true});
  Output now = placeholder<double>(g, {kBatch, -1, kSize});
  const VariableOptions kept{.trainable = false};
  const auto [keys, values, length] = layer.empty_cache(x, kTime);
  Variable k = variable(g, "k", keys, kept), v = variable(g, "v", values, kept),
           n = variable(g, "n", length, kept);
  const auto [y, next] = layer(now, nn::KeyValueCache{k, v, n});
  const std::vector<Op> keep{assign(k, next.keys), assign(v, next.values), assign(n, next.length)};
  Session s(g, one_thread());
  s.init();
  auto step = s.compile({y}, keep, {now});
  const Tensor want = s.run({all})[0];
  for (std::int64_t at = 0; at < kTime; at += 2) {
    const std::int64_t count = std::min<std::int64_t>(2, kTime - at);
    const auto part =
        s.run({x[{whole, range(at, at + count)}], all[{whole, range(at, at + count)}]});
    check_near(step.run({part[0]})[0], part[1]);
  }
  // There is no room for another one.
  const Tensor more = s.run({x[{whole, range(0, 1)}]})[0];
  CHECK_THROWS_AS(step.run({more}), Error);
}
