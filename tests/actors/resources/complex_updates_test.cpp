// Updates of complex variables: each part is a number of its own, as PyTorch's view_as_real makes
// it.
#include <doctest/doctest.h>

#include <complex>
#include <functional>

#include "ops/api.hpp"
#include "ops/optim/optim.hpp"
#include "tests/actors/support/sessions.hpp"

using namespace troupe;
using namespace troupe::test;

namespace {

using Complex = std::complex<double>;

Tensor drawn(const Shape& shape, double phase) {
  std::vector<double> values(std::size_t(shape.elements()));
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = std::sin(12.9898 * double(i) + phase);
  return Tensor::of<double>(shape, values);
}

using Rule = std::function<Op(const optim::Gradients&)>;

// A complex table, and two of its parts, from rows of which the same losses are made.
struct Twice {
  Graph g{1};
  Variable z, re, im;
  Output ids, loss, loss_of_parts;

  explicit Twice(const char* device) {
    const Shape shape{6, 3};
    const Tensor a = drawn(shape, 1), b = drawn(shape, 2);
    const auto there = g.with_device(device);
    re = variable(g, "re", a);
    im = variable(g, "im", b);
    z = variable(g, "z", complex(constant(g, a), constant(g, b)));
    const auto labels = data::digits(64).batch(3).repeat().outputs(g)[1];
    ids = mod(cast<std::int64_t>(labels), constant<std::int64_t>(g, 6));
    const Output wr = constant(g, drawn({3}, 3)), wi = constant(g, drawn({3}, 4));
    loss = mean(square(abs(gather(z, ids) * complex(wr, wi) - constant(g, Complex(0.3, -0.2)))));
    const Output x = gather(re, ids), y = gather(im, ids);
    loss_of_parts = mean(square(x * wr - y * wi - 0.3) + square(x * wi + y * wr + 0.2));
  }

  // The steps of an optimizer of either.
  void check(const Place& place, const Rule& rule, const CompileOptions& options = {}) {
    const Op train = rule(optim::gradients(loss, {z})),
             train_parts = rule(optim::gradients(loss_of_parts, {re, im}));
    PlacedSession session(g, place);
    session->init();
    const CompiledStep step = session->compile({}, {train, train_parts}, {}, options);
    for (int i = 0; i < 4; ++i) step.run(std::vector<Tensor>{});
    const auto got = session->run({real(z.value()), imag(z.value()), re.value(), im.value()});
    for (std::size_t part = 0; part < 2; ++part)
      for (std::int64_t i = 0; i < got[part].elements(); ++i)
        CHECK(got[part].data<double>()[i] ==
              doctest::Approx(got[part + 2].data<double>()[i]).epsilon(1e-9));
    CHECK(!Tensor::same(got[0], drawn({6, 3}, 1)));
  }
};

}  // namespace

TEST_CASE("optimizers change each part of a complex variable as a number of its own") {
  const Rule rules[] = {
      [](const auto& g) { return optim::Sgd{.lr = 0.3, .weight_decay = 0.1}.apply(g); },
      [](const auto& g) { return optim::Momentum{.lr = 0.1, .momentum = 0.8}.apply(g); },
      [](const auto& g) {
        return optim::Momentum{
            .lr = optim::exponential_decay({.rate = 0.1, .factor = 0.5, .every = 2}),
            .nesterov = true}
            .apply(g);
      },
      [](const auto& g) { return optim::Momentum{.lr = 0.1, .lazy = true}.apply(g); },
      [](const auto& g) { return optim::Adam{.lr = 0.05}.apply(g); },
      [](const auto& g) { return optim::Adam{.lr = 0.05, .lazy = true}.apply(g); },
      [](const auto& g) { return optim::AdamW{.lr = 0.05, .weight_decay = 0.1}.apply(g); },
      [](const auto& g) { return optim::Sgd{.lr = 0.3}.apply(optim::accumulate(g, 2)); },
      [](const auto& g) { return optim::Adam{.lr = 0.3}.apply(optim::over_replicas(g)); },
  };
  for (const Place& place : kPlaces)
    for (std::size_t i = 0; i < std::size(rules); ++i) {
      CAPTURE(place.name);
      CAPTURE(i);
      Twice(place.second).check(place, rules[i]);
      if (&place == kPlaces) Twice(place.second).check(place, rules[i], {.replicas = 2});
    }
}

TEST_CASE("a large complex table is updated by rows, and complex values are added to variables") {
  Graph g;
  const Variable z = variable(g, "z", zeros(g, {40'000, 2}, DType::c128));
  const Output ids = constant(g, Tensor::of<std::int64_t>({3}, {7, 39'999, 7}));
  const Op train = optim::Sgd{.lr = 0.5}.minimize(
      sum(square(abs(gather(z, ids) - constant(g, Complex(1, -2))))));
  Session s(g, one_thread());
  s.init();
  s.run({}, {train});
  const auto got =
      s.run({gather(z, constant(g, Tensor::of<std::int64_t>({3}, {7, 39'999, 8})))})[0];
  // The gradient of |z - (1 - 2i)|^2 is -2 + 4i; two rows of one place add up.
  const Complex want[] = {{2, -4}, {2, -4}, {1, -2}, {1, -2}, {0, 0}, {0, 0}};
  for (std::size_t i = 0; i < 6; ++i) CHECK(got.data<Complex>()[i] == want[i]);

  Graph h;
  const Variable sum = variable(h, "sum", constant(h, Complex(1, 2)));
  const Op add = assign_add(sum, constant(h, Complex(0.5, -3)));
  Session t(h, one_thread());
  t.init();
  t.run({}, {add});
  t.run({}, {add});
  CHECK(t.run({sum.value()})[0].item<Complex>() == Complex(2, -4));
}

TEST_CASE(
    "optimizers refuse complex rates, and complex variables where they have no rule for these") {
  Graph g;
  const Variable z = variable(g, "z", constant(g, Complex(1, 2)));
  const auto refused = [&](const std::function<void()>& use, std::string_view why) {
    try {
      use();
      FAIL("it was not refused: ", why);
    } catch (const Error& error) {
      CAPTURE(error.status().text());
      CHECK(error.status().code() == Code::invalid_argument);
      CHECK(error.status().text().find(why) != std::string::npos);
      CHECK(error.status().text().find("complex_updates_test.cpp") != std::string::npos);
    }
  };
  const Output loss = square(abs(z.value()));
  refused([&] { optim::Sgd{.lr = constant(g, Complex(0.1, 0.2))}.minimize(loss); },
          "a real number");
  refused([&] { optim::Sgd{.lr = -0.1}.minimize(loss); }, "not negative");
  refused([&] { optim::Adagrad{.lr = 0.1}.minimize(loss); }, "c128");
  refused([&] { optim::Lamb{.lr = 0.1}.minimize(loss); }, "c128");
  refused([&] { optim::clip_by_global_norm(optim::gradients(loss), 1); }, "c128");
  refused([&] { optim::clip_by_value(optim::gradients(loss), -1, 1); }, "c128");
}
