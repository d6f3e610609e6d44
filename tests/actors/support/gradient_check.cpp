#include "tests/actors/support/gradient_check.hpp"

#include <doctest/doctest.h>

namespace troupe::test {
namespace {

constexpr double kWeights[] = {0.5, -1.5, 2.0};
constexpr double kStep = 1e-5;

Output selector(Graph& g, const Tensor& selected) {
  return selected.dtype() == DType::bool_
             ? placeholder<bool>(g, PartialShape::scalar(), "p")
             : placeholder<std::int32_t>(g, PartialShape::scalar(), "n");
}

// Against what `value` (y and dy/dx) and `second` give when each element of x moves a little.
void check_at(const Tensor& selected, CompiledStep& value, CompiledStep& second) {
  const Tensor got = value.run({selected, point()})[1];
  const Tensor got2 = second.run({selected, point()})[0];
  REQUIRE(got.elements() == 3);
  REQUIRE(got2.elements() == 3);
  for (std::size_t i = 0; i < 3; ++i) {
    CAPTURE(i);
    const auto up = value.run({selected, point(kStep, i)});
    const auto down = value.run({selected, point(-kStep, i)});
    CHECK(got.data<double>()[i] ==
          doctest::Approx((up[0].item<double>() - down[0].item<double>()) / (2 * kStep))
              .epsilon(1e-6)
              .scale(1));
    double difference = 0;
    for (std::size_t k = 0; k < 3; ++k)
      difference += kWeights[k] * (up[1].data<double>()[k] - down[1].data<double>()[k]);
    CHECK(got2.data<double>()[i] ==
          doctest::Approx(difference / (2 * kStep)).epsilon(1e-5).scale(1));
  }
}

}  // namespace

Output gradient_of(Output y, Output x) {
  Output d = value_or_throw(gradients(std::vector{y}, std::vector{x}))[0];
  REQUIRE(!d.empty());
  return d;
}

Output loop_of(Graph& g, Output n, Output first,
               const std::function<Output(Output i, Output v)>& body, const LoopOptions& options) {
  return std::get<1>(while_loop(
      std::tuple{constant(g, 0), first}, [&](Output i, Output) { return i < n; },
      [&](Output i, Output v) {
        return std::tuple{i + 1, body(i, v)};
      },
      options));
}

Tensor point(double move, std::size_t at) {
  std::vector<double> x{0.3, -0.7, 1.9};
  x[at] += move;
  return Tensor::of<double>({3}, x);
}

void check_gradients(const std::function<Output(Graph&, Output s, Output x)>& make,
                     const std::vector<Tensor>& selected, const Place& place) {
  Graph g;
  Output s = selector(g, selected.at(0));
  Output x = placeholder<double>(g, {3}, "x");
  Output y = sum(make(g, s, x));
  const std::vector<NodeDef> before = g.def().nodes;
  Output dx = gradient_of(y, x);
  Output ddx = gradient_of(sum(dx * constant(g, Tensor::of<double>({3}, std::span(kWeights)))), x);
  for (std::size_t id = 0; id < before.size(); ++id) {  // nothing that was there is changed
    REQUIRE(g.def().nodes[id].name == before[id].name);
    REQUIRE(g.def().nodes[id].attrs == before[id].attrs);
  }
  PlacedSession session(g, place);
  CompiledStep value = session->compile({y, dx}, {}, {s, x});
  CompiledStep second = session->compile({ddx}, {}, {s, x});
  for (const Tensor& one : selected) {
    if (one.dtype() == DType::i32) CAPTURE(one.item<std::int32_t>());
    check_at(one, value, second);
  }
}

void check_gradients(const std::function<Output(Graph&, Output n, Output x)>& make,
                     const std::vector<std::int32_t>& numbers, const Place& place) {
  std::vector<Tensor> selected;
  for (std::int32_t number : numbers) selected.push_back(Tensor::scalar(number));
  check_gradients(make, selected, place);
}

}  // namespace troupe::test
