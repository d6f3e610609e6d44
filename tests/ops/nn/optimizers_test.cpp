// Optimizers beside their formulas, computed step by step.
#include <doctest/doctest.h>

#include <cmath>
#include <functional>
#include <vector>

#include "tests/ops/api_interpreter.hpp"

using namespace troupe;
using troupe::test::Interpreter;

namespace {

using Numbers = std::vector<double>;

// Five steps of `rule` on v, with loss sum(v^2) / 2 + sum(v) / 10, whose gradient is v + 0.1: each
// ends at what `step` makes of v, its gradient and the number of the step.
template <class Rule>
void follows(const Rule& rule, const std::function<void(Numbers& v, const Numbers& g, int t)>& step,
             Numbers v = {1, -2, 0.5}) {
  for (const DType dtype : {DType::f64, DType::f32}) {
    Numbers want = v;
    Graph g;
    Tensor start = Tensor::make(dtype, Shape{std::int64_t(v.size())}).value();
    for (std::size_t i = 0; i < v.size(); ++i) {
      if (dtype == DType::f64)
        start.mutable_data<double>()[i] = v[i];
      else
        start.mutable_data<float>()[i] = float(v[i]);
    }
    Variable x = variable(g, "x", start);
    Op train = rule.minimize(sum(x * x) * 0.5 + sum(x.value()) * 0.1);
    Interpreter run(g);
    run.init();
    for (int t = 1; t <= 5; ++t) {
      Numbers gradient;
      for (const double each : want) gradient.push_back(each + 0.1);
      step(want, gradient, t);
      run.run({}, {train});
      for (std::size_t i = 0; i < v.size(); ++i) {
        INFO(dtype_name(dtype), " step ", t, " element ", i);
        const double got = dtype == DType::f64 ? run.variable(x).data<double>()[i]
                                               : double(run.variable(x).data<float>()[i]);
        CHECK(got == doctest::Approx(want[i]).epsilon(dtype == DType::f64 ? 1e-13 : 2e-5));
      }
    }
  }
}

}  // namespace

TEST_CASE("Adagrad follows its formula") {
  Numbers sum(3, 0.0);
  auto step = [&](double initial, double epsilon) {
    return [&sum, initial, epsilon](Numbers& v, const Numbers& g, int t) {
      for (std::size_t i = 0; i < v.size(); ++i) {
        if (t == 1) sum[i] = initial;
        sum[i] += g[i] * g[i];
        v[i] -= 0.3 * g[i] / (std::sqrt(sum[i]) + epsilon);
      }
    };
  };
  follows(optim::Adagrad{.lr = 0.3}, step(0, 1e-10));
  follows(optim::Adagrad{.lr = 0.3, .initial = 0.1, .epsilon = 1e-3}, step(0.1, 1e-3));
}

TEST_CASE("RMSProp follows its formula, plain, with momentum and centred") {
  Numbers square(3), velocity(3), mean(3);
  const auto step = [&](double momentum, bool centered) {
    return [&, momentum, centered](Numbers& v, const Numbers& g, int t) {
      for (std::size_t i = 0; i < v.size(); ++i) {
        if (t == 1) square[i] = velocity[i] = mean[i] = 0;
        square[i] = 0.9 * square[i] + 0.1 * g[i] * g[i];
        mean[i] = 0.9 * mean[i] + 0.1 * g[i];
        const double of = square[i] - (centered ? mean[i] * mean[i] : 0);
        velocity[i] = momentum * velocity[i] + g[i] / (std::sqrt(of) + 1e-4);
        v[i] -= 0.05 * velocity[i];
      }
    };
  };
  const optim::RmsProp plain{.lr = 0.05, .rho = 0.9, .epsilon = 1e-4};
  follows(plain, step(0, false));
  auto heavy = plain;
  heavy.momentum = 0.7;
  follows(heavy, step(0.7, false));
  heavy.centered = true;
  follows(heavy, step(0.7, true));
}

TEST_CASE("a centred RMSProp whose gradients do not change makes no NaN") {
  Graph g;
  Variable v = variable(g, "v", Tensor::scalar(0.f));
  Op train = optim::RmsProp{.lr = 1e-3, .rho = 0.5, .centered = true}.minimize(v * 0.1f);
  Interpreter run(g);
  run.init();
  for (int i = 0; i < 100; ++i) run.run({}, {train});
  CHECK(std::isfinite(run.variable(v).item<float>()));
}

TEST_CASE("Adadelta follows its formula") {
  Numbers square(3), moved(3);
  follows(optim::Adadelta{.lr = 0.5, .rho = 0.8, .epsilon = 1e-3},
          [&](Numbers& v, const Numbers& g, int t) {
            for (std::size_t i = 0; i < v.size(); ++i) {
              if (t == 1) square[i] = moved[i] = 0;
              square[i] = 0.8 * square[i] + 0.2 * g[i] * g[i];
              const double by = std::sqrt(moved[i] + 1e-3) / std::sqrt(square[i] + 1e-3) * g[i];
              moved[i] = 0.8 * moved[i] + 0.2 * by * by;
              v[i] -= 0.5 * by;
            }
          });
}

TEST_CASE("Ftrl follows its formula, and sets what is of no use to 0") {
  Numbers n(3), z(3);
  const auto step = [&](double l1, double l2) {
    return [&, l1, l2](Numbers& v, const Numbers& g, int t) {
      for (std::size_t i = 0; i < v.size(); ++i) {
        if (t == 1) n[i] = 0.1, z[i] = 0;
        const double before = n[i];
        n[i] += g[i] * g[i];
        z[i] += g[i] - (std::sqrt(n[i]) - std::sqrt(before)) / 0.2 * v[i];
        const double sign = z[i] < 0 ? -1 : 1;
        v[i] = std::abs(z[i]) <= l1 ? 0 : (sign * l1 - z[i]) / (std::sqrt(n[i]) / 0.2 + 2 * l2);
      }
    };
  };
  follows(optim::Ftrl{.lr = 0.2}, step(0, 0));
  follows(optim::Ftrl{.lr = 0.2, .l1 = 0.3, .l2 = 0.7}, step(0.3, 0.7));
}

TEST_CASE("proximal steps follow their formula, and set what is of no use to 0") {
  const auto proximal = [](double p, double rate, double l1, double l2) {
    const double left = std::max(std::abs(p) - rate * l1, 0.0);
    return (p < 0 ? -left : left) / (1 + rate * l2);
  };
  follows(optim::ProximalSgd{.lr = 0.1, .l1 = 0.5, .l2 = 0.3},
          [&](Numbers& v, const Numbers& g, int) {
            for (std::size_t i = 0; i < v.size(); ++i)
              v[i] = proximal(v[i] - 0.1 * g[i], 0.1, 0.5, 0.3);
          });
  Numbers sum(3);
  follows(optim::ProximalAdagrad{.lr = 0.2, .initial = 0.1, .l1 = 0.4, .l2 = 0.2},
          [&](Numbers& v, const Numbers& g, int t) {
            for (std::size_t i = 0; i < v.size(); ++i) {
              if (t == 1) sum[i] = 0.1;
              sum[i] += g[i] * g[i];
              const double rate = 0.2 / std::sqrt(sum[i]);
              v[i] = proximal(v[i] - rate * g[i], rate, 0.4, 0.2);
            }
          });
  Graph g;
  Variable v = variable(g, "v", Tensor::of<double>(Shape{2}, {0.01, 5}));
  Op train = optim::ProximalSgd{.lr = 0.1, .l1 = 1}.minimize(troupe::sum(v * 0.0));
  Interpreter run(g);
  run.init();
  run.run({}, {train});
  CHECK(Tensor::same(run.variable(v), Tensor::of<double>(Shape{2}, {0, 4.9})));
}

TEST_CASE("LAMB follows its formula, whose ratio is that of whole variables") {
  Numbers m, s;
  const auto step = [&](double decay) {
    return [&, decay](Numbers& v, const Numbers& g, int t) {
      if (t == 1) m = s = Numbers(v.size(), 0.0);
      Numbers by(v.size());
      double norm = 0, length = 0;
      for (std::size_t i = 0; i < v.size(); ++i) {
        m[i] = 0.9 * m[i] + 0.1 * g[i];
        s[i] = 0.99 * s[i] + 0.01 * g[i] * g[i];
        by[i] = m[i] / (1 - std::pow(0.9, t)) / (std::sqrt(s[i] / (1 - std::pow(0.99, t))) + 1e-6) +
                decay * v[i];
        norm += v[i] * v[i];
        length += by[i] * by[i];
      }
      const double ratio = norm > 0 && length > 0 ? std::sqrt(norm) / std::sqrt(length) : 1;
      for (std::size_t i = 0; i < v.size(); ++i) v[i] -= 0.1 * ratio * by[i];
    };
  };
  const optim::Lamb rule{.lr = 0.1, .beta1 = 0.9, .beta2 = 0.99, .weight_decay = 0.2};
  follows(rule, step(0.2));
  auto plain = rule;
  plain.weight_decay = 0.0;
  follows(plain, step(0), {0, 0});                 // a variable of zeros has the ratio 1
  follows(plain, step(0), Numbers(40'000, 0.25));  // several chunks
}

TEST_CASE("each optimizer trains, with a schedule, clipping and accumulation") {
  const auto ends = [](const auto& rule) {
    Graph g;
    Variable v = variable(g, "v", Tensor::of<float>(Shape{2}, {3, -2}));
    const Output loss = mean(square(v - 1.0f));
    Op train = rule.apply(optim::clip_by_global_norm(optim::gradients(loss), 1.0));
    Interpreter run(g);
    run.init();
    const float before = run.scalar(loss);
    for (int i = 0; i < 60; ++i) run.run({}, {train});
    return run.scalar(loss) < before / 2;
  };
  const optim::Schedule falling = optim::cosine({.rate = 0.3, .steps = 60});
  CHECK(ends(optim::Adagrad{.lr = falling}));
  CHECK(ends(optim::RmsProp{.lr = 0.05}));
  CHECK(ends(optim::RmsProp{.lr = 0.02, .momentum = 0.5, .centered = true}));
  CHECK(ends(optim::Adadelta{.lr = 1.0, .epsilon = 1e-2}));
  CHECK(ends(optim::Ftrl{.lr = 0.5}));
  CHECK(ends(optim::ProximalSgd{.lr = falling, .l2 = 1e-3}));
  CHECK(ends(optim::ProximalAdagrad{.lr = 0.3}));
  CHECK(ends(optim::Lamb{.lr = 0.05}));
}
