// ops/optim: what optimizers share, and what a program can do between gradients and updates.
#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <numbers>

#include "tests/ops/api_interpreter.hpp"

using namespace troupe;
using troupe::test::Interpreter;

namespace {

// An optimizer of the program's own: as far as the sign of the gradient says, less each time.
struct SignDescent {
  Operand lr = 1.0;

  Op update(const optim::Parameter& p) const {
    const Variable seen = p.slot("seen");
    const Output step = p.rate(lr, "lr") * sign(p.gradient()) / (seen + 1.0);
    return group(p.variable().handle().graph(),
                 {subtract(p, p.variable(), step), subtract(p, seen, -ones_like(seen))});
  }
  Op apply(const optim::Gradients& gradients, Site site = Site::here()) const {
    return optim::apply_rule(*this, gradients, site);
  }

 private:
  static Op subtract(const optim::Parameter& p, const Variable& from, Output value) {
    return p.write({.op = "AssignSub", .inputs = {from.handle(), value}});
  }
};

// A vector of variables v0, v1, ... of which the loss is sum(v * slope): their gradients are
// slopes.
struct Slopes {
  Graph g;
  std::vector<Variable> variables;
  std::vector<Tensor> slopes;
  Output loss;

  explicit Slopes(std::vector<Tensor> all) : slopes(std::move(all)) {
    for (const Tensor& slope : slopes) {
      const Tensor zero = Tensor::zeros(slope.dtype(), slope.shape()).value();
      variables.push_back(variable(g, "v", zero));
      const Output part = cast<double>(sum(variables.back() * constant(g, slope)));
      loss = loss.empty() ? part : loss + part;
    }
  }
};

// The gradients' values in one run.
std::vector<Tensor> values(Graph& g, const optim::Gradients& gradients) {
  Interpreter run(g);
  run.init();
  std::vector<Output> all;
  for (const optim::Gradient& gradient : gradients.each) all.push_back(gradient.value);
  return run.run(all);
}

Tensor f64(std::initializer_list<double> values) {
  return Tensor::of<double>(Shape{std::int64_t(values.size())}, values);
}

void check_f64(const Tensor& got, const std::vector<double>& want) {
  REQUIRE(got.elements() == std::int64_t(want.size()));
  for (std::size_t i = 0; i < want.size(); ++i)
    CHECK(got.span<double>()[i] == doctest::Approx(want[i]).epsilon(1e-14));
}

// Steps of `rule` on v = {1, -2} with loss sum(v^2) / 2, whose gradient is v, against `step`.
template <class Rule, class Step>
void follows_by_element(const Rule& rule, Step step) {
  Graph g;
  Variable v = variable(g, "v", f64({1, -2}));
  Op train = rule.minimize(sum(v * v) * 0.5);
  Interpreter run(g);
  run.init();
  double want[2] = {1, -2};
  for (int t = 1; t <= 5; ++t) {
    run.run({}, {train});
    for (int i = 0; i < 2; ++i) {
      step(want[i], want[i], i, t);
      CHECK(run.variable(v).span<double>()[std::size_t(i)] ==
            doctest::Approx(want[i]).epsilon(1e-13));
    }
  }
}

// The rate of a schedule for each of the steps.
std::vector<double> rates(const optim::Schedule& schedule, std::initializer_list<double> steps) {
  Graph g;
  Output step = placeholder<double>(g, PartialShape::scalar());
  Output rate = schedule(step);
  Interpreter run(g);
  std::vector<double> out;
  for (double at : steps)
    out.push_back(run.run({rate}, {}, {{step.node(), Tensor::scalar(at)}})[0].item<double>());
  return out;
}

void check_rates(const std::vector<double>& got, const std::vector<double>& want) {
  REQUIRE(got.size() == want.size());
  for (std::size_t i = 0; i < want.size(); ++i) {
    INFO("rate " << i);
    CHECK(got[i] == doctest::Approx(want[i]).epsilon(1e-14));
  }
}

}  // namespace

TEST_CASE("an optimizer of the program's own is a struct with an update") {
  Graph g;
  Variable v = variable(g, "v", Tensor::of<double>(Shape{2}, {1, -2}));
  Op train = SignDescent{}.apply(optim::gradients(sum(v * v)));
  Interpreter run(g);
  run.init();
  for (int i = 0; i < 2; ++i) run.run({}, {train});
  CHECK(Tensor::same(run.variable(v), Tensor::of<double>(Shape{2}, {0, -0.5})));
}

TEST_CASE("gradients that are changed on the way are what apply applies") {
  Graph g;
  Variable v = variable(g, "v", Tensor::scalar(3.0)), w = variable(g, "w", Tensor::scalar(5.0));
  optim::Gradients gradients = optim::gradients(v * v + w * 4.0);
  REQUIRE(gradients.size() == 2);
  CHECK(gradients[0].variable.name() == "v");
  gradients[0].value = gradients[0].value * 10.0;
  Op train = optim::Sgd{.lr = 1.0}.apply(gradients);
  Interpreter run(g);
  run.init();
  run.run({}, {train});
  CHECK(run.variable(v).item<double>() == 3 - 60);
  CHECK(run.variable(w).item<double>() == 5 - 4);
}

TEST_CASE("apply refuses an empty list of gradients") {
  CHECK_THROWS_AS(optim::Adam{}.apply({}), Error);
}

TEST_CASE("clip_by_value bounds every element") {
  Slopes s({f64({-3, 0.5, 2}), f64({7})});
  auto got = values(s.g, optim::clip_by_value(optim::gradients(s.loss), -1, 1.5));
  CHECK(Tensor::same(got[0], f64({-1, 0.5, 1.5})));
  CHECK(Tensor::same(got[1], f64({1.5})));
  CHECK_THROWS_AS(optim::clip_by_value(optim::gradients(s.loss), 1, -1), Error);
}

TEST_CASE("clip_by_norm shrinks each gradient that is too long, by itself") {
  Slopes s({f64({3, -4}), f64({0.3, 0.4}), f64({0, 0})});
  auto got = values(s.g, optim::clip_by_norm(optim::gradients(s.loss), 2));
  check_f64(got[0], {3 * 2.0 / 5, -4 * 2.0 / 5});
  check_f64(got[1], {0.3, 0.4});
  check_f64(got[2], {0, 0});
  CHECK_THROWS_AS(optim::clip_by_norm(optim::gradients(s.loss), 0), Error);
}

TEST_CASE("clip_by_global_norm shrinks all gradients by one factor") {
  Slopes s({f64({1, -2}), f64({4}), f64({2})});  // of norm 5
  optim::Gradients gradients = optim::gradients(s.loss);
  Interpreter run(s.g);
  run.init();
  CHECK(run.run({optim::global_norm(gradients)})[0].item<double>() == doctest::Approx(5));
  auto got = values(s.g, optim::clip_by_global_norm(gradients, 0.5));
  check_f64(got[0], {0.1, -0.2});
  check_f64(got[1], {0.4});
  check_f64(got[2], {0.2});
  auto kept = values(s.g, optim::clip_by_global_norm(gradients, 6));
  for (std::size_t i = 0; i < kept.size(); ++i) CHECK(Tensor::same(kept[i], s.slopes[i]));
}

TEST_CASE("gradients of several dtypes have one norm, each clipped in its own") {
  Slopes s({Tensor::of<float>(Shape{1}, {3}), f64({4})});
  auto got = values(s.g, optim::clip_by_global_norm(optim::gradients(s.loss), 1));
  CHECK(got[0].span<float>()[0] == doctest::Approx(0.6));
  CHECK(got[1].span<double>()[0] == doctest::Approx(0.8));
}

TEST_CASE("a norm that is not finite makes gradients NaN, never zero") {
  Slopes s({f64({1, std::numeric_limits<double>::infinity()}), f64({2})});
  auto got = values(s.g, optim::clip_by_global_norm(optim::gradients(s.loss), 1));
  for (const Tensor& t : got)
    for (double x : t.span<double>()) CHECK(std::isnan(x));
}

TEST_CASE("weight decay of Sgd is part of the gradient") {
  follows_by_element(optim::Sgd{.lr = 0.1, .weight_decay = 0.5},
                     [](double& v, double grad, int, int) { v -= 0.1 * (grad + 0.5 * v); });
}

TEST_CASE("weight decay of Momentum goes through the velocity, plain and after Nesterov") {
  for (bool nesterov : {false, true}) {
    double velocity[2] = {0, 0};
    follows_by_element(
        optim::Momentum{.lr = 0.1, .momentum = 0.5, .nesterov = nesterov, .weight_decay = 0.25},
        [&](double& v, double grad, int i, int) {
          grad += 0.25 * v;
          velocity[i] = 0.5 * velocity[i] + grad;
          v -= 0.1 * (nesterov ? grad + 0.5 * velocity[i] : velocity[i]);
        });
  }
}

// As torch.optim.AdamW: the decay first, the bias of both moments corrected before epsilon.
TEST_CASE("AdamW decays the variable, not the gradient") {
  double m[2] = {0, 0}, s[2] = {0, 0};
  follows_by_element(
      optim::AdamW{.lr = 0.1, .beta1 = 0.8, .beta2 = 0.9, .epsilon = 0.01, .weight_decay = 0.5},
      [&](double& v, double grad, int i, int t) {
        v -= 0.1 * 0.5 * v;
        m[i] = 0.8 * m[i] + 0.2 * grad;
        s[i] = 0.9 * s[i] + 0.1 * grad * grad;
        const double m_hat = m[i] / (1 - std::pow(0.8, t));
        const double s_hat = s[i] / (1 - std::pow(0.9, t));
        v -= 0.1 * m_hat / (std::sqrt(s_hat) + 0.01);
      });
}

TEST_CASE("AdamW without decay is Adam, but for where epsilon stands") {
  const auto trained = [](auto rule) {
    Graph g;
    Variable v = variable(g, "v", f64({1, -2}));
    Op train = rule.minimize(sum(v * v * v));
    Interpreter run(g);
    run.init();
    for (int i = 0; i < 3; ++i) run.run({}, {train});
    return run.variable(v);
  };
  const Tensor a = trained(optim::Adam{.lr = 0.1, .epsilon = 0}),
               b = trained(optim::AdamW{.lr = 0.1, .epsilon = 0, .weight_decay = 0});
  CHECK(Tensor::same(a, b));
}

TEST_CASE("schedules follow their formulas") {
  check_rates(rates(optim::constant_rate(0.3), {0, 5}), {0.3, 0.3});
  check_rates(rates(optim::step_decay({.rate = 2, .every = 3, .factor = 0.5}), {0, 2, 3, 5, 6, 9}),
              {2, 2, 1, 1, 0.5, 0.25});
  check_rates(rates(optim::exponential_decay({.rate = 2, .factor = 0.5, .every = 4}), {0, 2, 4, 8}),
              {2, 2 * std::sqrt(0.5), 1, 0.5});
  const auto wave = [](double step) {
    return 0.1 + (2 - 0.1) * 0.5 * (1 + std::cos(std::numbers::pi * step / 8));
  };
  check_rates(rates(optim::cosine({.rate = 2, .steps = 8, .least = 0.1}), {0, 1, 4, 7, 8, 9, 1000}),
              {2, wave(1), 1.05, wave(7), 0.1, 0.1, 0.1});
}

TEST_CASE("a warm-up rises to the first rate of its schedule, which begins after it") {
  const auto warm = optim::warm_up(4, optim::step_decay({.rate = 2, .every = 2, .factor = 0.5}));
  check_rates(rates(warm, {0, 1, 2, 3, 4, 5, 6, 8}), {0.5, 1, 1.5, 2, 2, 2, 1, 0.5});
}

TEST_CASE("a schedule that makes no sense is refused where it is made") {
  CHECK_THROWS_AS(optim::cosine({.rate = 1, .steps = 0}), Error);
  CHECK_THROWS_AS(optim::constant_rate(-1), Error);
  CHECK_THROWS_AS(optim::exponential_decay({.rate = 1, .factor = NAN}), Error);
  CHECK_THROWS_AS(optim::warm_up(0, optim::constant_rate(1)), Error);
}

TEST_CASE("an optimizer with a schedule counts its own updates") {
  Graph g;
  Variable v = variable(g, "v", Tensor::scalar(0.0)), w = variable(g, "w", Tensor::scalar(0.f));
  Output loss = v.value() * -1.0 + cast<double>(w.value() * -1.0f);
  Op train =
      optim::Sgd{.lr = optim::step_decay({.rate = 1, .every = 2, .factor = 0.5})}.minimize(loss);
  Interpreter run(g);
  run.init();
  for (int i = 0; i < 5; ++i) run.run({}, {train});
  CHECK(run.variable(v).item<double>() == 1 + 1 + 0.5 + 0.5 + 0.25);
  CHECK(run.variable(w).item<float>() == 3.25f);
}

TEST_CASE("a rate that is a graph value serves parameters of any dtype") {
  Graph g;
  Variable v = variable(g, "v", Tensor::scalar(0.0)),
           rate = variable(g, "rate", Tensor::scalar(0.5f), {.trainable = false});
  Op train = optim::Sgd{.lr = rate}.minimize(v.value() * -1.0);
  Interpreter run(g);
  run.init();
  run.run({}, {train});
  CHECK(run.variable(v).item<double>() == 0.5);
}

namespace {

// A linear model on four examples, all of whose numbers are exact in binary: as one batch, or as
// the parts of four runs.
template <class Rule>
Tensor trained(const Rule& rule, int parts, int steps, double clip) {
  Graph g;
  Variable w = variable(g, "w", f64({1, -1}));
  const std::int64_t rows = 4 / parts;
  Output x = placeholder<double>(g, {rows, 2}), y = placeholder<double>(g, {rows, 1});
  Output error = mat_mul(x, reshape(w, {2, 1})) - y;
  optim::Gradients gradients = optim::gradients(mean(error * error));
  if (parts > 1) gradients = optim::accumulate(gradients, parts);
  if (clip > 0) gradients = optim::clip_by_global_norm(gradients, clip);
  Op train = rule.apply(gradients);
  Interpreter run(g);
  run.init();
  const std::vector<double> xs = {1, 2, -0.5, 3, 0.25, 1, 2, -2}, ys = {1, 0.5, -2, 4};
  for (int i = 0; i < steps * parts; ++i) {
    const auto at = std::size_t(i % parts) * std::size_t(rows);
    const std::vector<double> in(xs.begin() + std::ptrdiff_t(2 * at),
                                 xs.begin() + std::ptrdiff_t(2 * (at + std::size_t(rows))));
    const std::vector<double> out(ys.begin() + std::ptrdiff_t(at),
                                  ys.begin() + std::ptrdiff_t(at + std::size_t(rows)));
    run.run({}, {train},
            {{x.node(), Tensor::of<double>(Shape{rows, 2}, in)},
             {y.node(), Tensor::of<double>(Shape{rows, 1}, out)}});
  }
  return run.variable(w);
}

}  // namespace

TEST_CASE("the gradients of four runs make the bits of one batch") {
  const auto check = [](const auto& rule) {
    const Tensor one = trained(rule, 1, 3, 0), four = trained(rule, 4, 3, 0),
                 two = trained(rule, 2, 3, 0);
    CHECK(Tensor::same(one, four));
    CHECK(Tensor::same(one, two));
    CHECK_FALSE(Tensor::same(one, trained(rule, 4, 2, 0)));
  };
  check(optim::Sgd{.lr = 0.125});
  check(optim::Momentum{.lr = 0.125, .momentum = 0.5, .weight_decay = 0.25});
  check(optim::Adam{.lr = 0.125});
  check(optim::AdamW{.lr = optim::step_decay({.rate = 0.125, .every = 1, .factor = 0.5})});
  check(SignDescent{});
}

TEST_CASE("what is accumulated is clipped as one gradient") {
  const optim::Sgd rule{.lr = 0.5};
  CHECK(Tensor::same(trained(rule, 1, 2, 0.5), trained(rule, 4, 2, 0.5)));
  CHECK_FALSE(Tensor::same(trained(rule, 1, 2, 0.5), trained(rule, 1, 2, 0)));
}

TEST_CASE("an accumulation changes nothing before its last run") {
  Graph g;
  Variable v = variable(g, "v", Tensor::scalar(3.0));
  Op train = optim::Adam{}.apply(optim::accumulate(optim::gradients(v * v), 3));
  Interpreter run(g);
  run.init();
  for (int i = 0; i < 2; ++i) {
    run.run({}, {train});
    CHECK(run.variable(v).item<double>() == 3);
  }
  run.run({}, {train});
  CHECK(run.variable(v).item<double>() < 3);
  CHECK_THROWS_AS(optim::accumulate(optim::gradients(v * v), 0), Error);
  CHECK_THROWS_AS(optim::accumulate(optim::accumulate(optim::gradients(v * v), 2), 2), Error);
}

TEST_CASE("gradients are split by variable, and both parts have all else that they had") {
  Slopes s({Tensor::of<float>({2}, {1, 2}), Tensor::scalar(3.f), Tensor::of<float>({1}, {4})});
  const Variable average = variable(s.g, "average", 0.0, {.trainable = false});
  move_average(average, 0.5, s.loss);
  optim::Gradients gradients = optim::gradients(s.loss);
  REQUIRE(gradients.writes.size() == 1);
  gradients.when = constant(s.g, true);
  const auto [vectors, scalars] =
      optim::split(gradients, [](const Variable& v) { return v.shape().rank() > 0; });
  REQUIRE(vectors.size() == 2);
  REQUIRE(scalars.size() == 1);
  CHECK(scalars[0].variable.name() == s.variables[1].name());
  CHECK(vectors.when.is(gradients.when));
  for (const auto* part : {&vectors, &scalars}) CHECK(part->writes.size() == 1);
  const Op train =
      group(s.g, {optim::Sgd{.lr = 1}.apply(vectors), optim::Sgd{.lr = 10}.apply(scalars)});
  Interpreter run(s.g);
  run.init();
  run.run({}, {train});
  CHECK(Tensor::same(run.variable(s.variables[0]), Tensor::of<float>({2}, {-1, -2})));
  CHECK(run.variable(s.variables[1]).item<float>() == -30);
  CHECK(run.variable(s.variables[2]).span<float>()[0] == -4);
  CHECK_THROWS_AS(optim::split({}, [](const Variable&) { return true; }), Error);
}

TEST_CASE("runs are accumulated into nothing if one of them does not count") {
  Slopes s({Tensor::of<float>({2}, {1, 2})});
  optim::Gradients gradients = optim::gradients(s.loss);
  const Output when = placeholder<bool>(s.g, {});
  gradients.when = when;
  gradients = optim::accumulate(gradients, 3);
  CHECK_THROWS_AS(optim::accumulate(gradients, 2), Error);
  const Op train = optim::Sgd{.lr = 1}.apply(gradients);
  Interpreter run(s.g);
  run.init();
  float want = 0;
  for (int counts : {0b111, 0b011, 0b110, 0b111, 0b101, 0b000, 0b111}) {
    CAPTURE(counts);
    for (int i = 0; i < 3; ++i) {
      CHECK(Tensor::same(run.variable(s.variables[0]), Tensor::of<float>({2}, {want, 2 * want})));
      run.run({}, {train}, {{when.node(), Tensor::scalar(bool(counts >> i & 1))}});
    }
    if (counts == 0b111) want -= 1;
  }
  CHECK(Tensor::same(run.variable(s.variables[0]), Tensor::of<float>({2}, {-3, -6})));
}
