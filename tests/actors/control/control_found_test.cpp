// What random programs (random_control_test.cpp) have found, at its smallest.
#include <doctest/doctest.h>

#include <cmath>
#include <set>

#include "ops/api.hpp"
#include "ops/optim/optim.hpp"
#include "tests/actors/support/sessions.hpp"

using namespace troupe;
using namespace troupe::test;

TEST_CASE("writes behind a loop stay in their order when the loop's gradient is asked for") {
  Graph g;
  Output x = placeholder<double>(g, PartialShape::scalar(), "x");
  Variable v = variable(g, "v", Tensor::scalar(7.0));
  auto [i, y] = while_loop(
      std::tuple{constant(g, 0), x}, [&](Output i, Output) { return i < 2; },
      [&](Output i, Output y) {
        return std::tuple{i + 1, y * x};
      });
  Op add = assign_add(v, y);
  Op set = assign(v, constant(g, 1.0));
  Output slope = value_or_throw(gradients(std::vector{y}, std::vector{x}))[0];
  Session s(g, one_thread());
  s.init();
  s.run({y}, {add, set}, {{x, Tensor::scalar(2.0)}});
  CHECK(s.run({read(v)})[0].item<double>() == 1);
  s.run({y, slope}, {add, set}, {{x, Tensor::scalar(2.0)}});
  CHECK(s.run({read(v)})[0].item<double>() == 1);
}

TEST_CASE("a loop reads a variable of another device") {
  const Place& place = kPlaces[1];
  Graph g;
  Variable v = variable_on(g, place.second, "v", Tensor::scalar(3.0));
  auto there = g.with_device(place.first);
  auto loop = [&](const std::function<Output()>& value) {
    return std::get<1>(while_loop(
        std::tuple{constant(g, 0), constant(g, 0.0)}, [&](Output i, Output) { return i < 2; },
        [&](Output i, Output sum) {
          return std::tuple{i + 1, sum + value()};
        }));
  };
  Output around = loop([&] { return v.value(); });
  Output named = loop([&] {
    auto where_it_is = g.with_device(place.second);
    return read(v);
  });
  PlacedSession s(g, place);
  s->init();
  CHECK(s->run({around})[0].item<double>() == 6);
  CHECK(s->run({named})[0].item<double>() == 6);
}

TEST_CASE("two handles of one variable have one gradient, in branches, loops and functions, too") {
  Graph g;
  Output p = placeholder<bool>(g, PartialShape::scalar(), "p");
  Variable v = variable(g, "v", Tensor::scalar(3.0));
  AttrMap attrs = g.node(v.handle().node()).attrs;
  attrs.insert_or_assign("shared_name", std::string("v"));
  const Output again = g.add(NodeSpec{.op = "Variable", .attrs = attrs, .name = "again"}).output();
  auto product = [&] {
    return read(v) * g.add("ReadVariable", {again}, {{"T", DType::f64}}) * read(v);
  };
  Function f = g.function("f", {}, {f64_scalar}, [&](Function&) { return product(); });
  const Output ys[] = {
      product(), f.call({})[0], cond(p, product, [&] { return constant(g, 1.0); }),
      std::get<1>(while_loop(
          std::tuple{constant(g, 0), constant(g, 0.0)}, [](Output i, Output) { return i < 2; },
          [&](Output i, Output sum) {
            return std::tuple{i + 1, sum + 0.5 * product()};
          })),
      std::get<1>(while_loop(
          std::tuple{constant(g, 0), constant(g, 0.0)}, [](Output i, Output) { return i < 2; },
          [&](Output i, Output sum) {
            return std::tuple{i + 1, sum + cond(i < 1, product, [&] { return constant(g, 0.0); })};
          }))};
  Session s(g, one_thread());
  s.init();
  for (const Output& y : ys) {
    CAPTURE(y.name());
    for (const std::vector<Output>& xs :
         {std::vector{v.handle()}, {again}, {v.handle(), again}, {again, v.handle()}}) {
      const std::vector<Output> slopes = value_or_throw(gradients(std::vector{y}, xs));
      for (const Output& slope : slopes)
        CHECK(s.run({slope}, {}, {{p, Tensor::scalar(true)}})[0].item<double>() == 27);
    }
  }
}

TEST_CASE("gradients are accumulated in a loop") {
  auto trained = [](bool in_loop) {
    Graph g;
    Variable w = variable(g, "w", Tensor::of<float>({2}, {0.5f, -0.25f}));
    auto step = [&] {
      return optim::Sgd{.lr = 0.05}.apply(optim::accumulate(optim::gradients(sum(w * w * w)), 2));
    };
    Session s(g, one_thread());
    if (in_loop) {
      Output loop = while_loop(
          constant(g, 0), [](Output i) { return i < 5; },
          [&](Output i) {
            step();
            return i + 1;
          });
      s.init();
      s.run({loop});
    } else {
      Op once = step();
      s.init();
      for (int i = 0; i < 5; ++i) s.run({}, {once});
    }
    return s.run({read(w)})[0];
  };
  CHECK(Tensor::same(trained(true), trained(false)));
}

TEST_CASE("a loop waits for a call of a function that calls itself, whose results nobody wants") {
  Graph g;
  Output n = placeholder<std::int64_t>(g, PartialShape::scalar(), "n");
  Variable v = variable(g, "v", Tensor::scalar(std::int64_t{0}));
  Function count = g.function("count", {i64_scalar}, {i64_scalar}, [&](Function& self, Output k) {
    assign_add(v, k);
    return cond(
        k > 0, [&] { return self(k - 1); }, [&] { return k; });
  });
  Output last = while_loop(
      n * 0, [&](Output i) { return i < n; },
      [&](Output i) {
        count(i);
        return i + 1;
      });
  Session s(g, one_thread());
  s.init();
  CHECK(s.run({last}, {}, {{n, Tensor::scalar(std::int64_t{4})}})[0].item<std::int64_t>() == 4);
  CHECK(s.run({read(v)})[0].item<std::int64_t>() == 0 + 1 + 3 + 6);
}

TEST_CASE(
    "a loop in a loop that computes its values again has its shapes in a third one's gradient") {
  Graph g;
  Output x = placeholder<double>(g, PartialShape::scalar(), "x");
  Output xs = placeholder<double>(g, {-1}, "xs");
  auto times = [&](Output n, Output first, LoopOptions options, auto body) {
    return std::get<1>(while_loop(
        std::tuple{constant(g, 0), first}, [&](Output i, Output) { return i < n; },
        [&](Output i, Output y) {
          return std::tuple{i + 1, body(y)};
        },
        options));
  };
  Output n = placeholder<std::int32_t>(g, PartialShape::scalar(), "n");
  Output y = times(n, x, {}, [&](Output y) {
    return times(n, y, {.save = LoopSave::variables}, [&](Output y) {
      return times(n, y, {}, [&](Output y) { return sum(xs * y) * 0.5; });
    });
  });
  const std::vector<Output> slopes = value_or_throw(gradients(std::vector{y}, std::vector{x, xs}));
  Session s(g, one_thread());
  const auto got = s.run({y, slopes[0], slopes[1]}, {},
                         {{n, Tensor::scalar(2)},
                          {x, Tensor::scalar(3.0)},
                          {xs, Tensor::of<double>({2}, {1.0, 2.0})}});
  const double half = 1.5;  // of the sum of xs
  CHECK(got[0].item<double>() == doctest::Approx(3 * std::pow(half, 8)));
  CHECK(got[1].item<double>() == doctest::Approx(std::pow(half, 8)));
  for (int k = 0; k < 2; ++k)
    CHECK(got[2].data<double>()[k] == doctest::Approx(3 * 8 * std::pow(half, 7) * 0.5));
}

TEST_CASE("a run that might have written, and has not, is not drawn again") {
  for (const Place& place : kPlaces) {
    INFO(place.name);
    Graph g;
    Variable v = variable_on(g, place.second, "v", Tensor::scalar(0.0f));
    Output u = random_uniform(g, PartialShape::scalar());
    Output wrote = cond(
        u > 0.9f,
        [&] {
          assign_add(v, constant(g, 1.0f));
          return constant(g, 1);
        },
        [&] { return constant(g, 0); });
    PlacedSession s(g, place);
    s->init();
    std::set<float> drawn;
    constexpr int kRuns = 200;
    int writes = 0;
    for (int k = 0; k < kRuns; ++k) {
      const float x = s->run({u, wrote})[0].item<float>();
      drawn.insert(x);
      writes += x > 0.9f;
    }
    CHECK(drawn.size() > kRuns - 3);
    CHECK(writes > 0);
    CHECK(s->run({read(v)})[0].item<float>() == float(writes));
  }
}

TEST_CASE("what comes after a map comes after what its function did on another device") {
  Graph g;
  Output xs = placeholder<double>(g, {-1}, "xs");
  auto on = [&](const char* device, auto make) {
    auto there = g.with_device(device);
    return make();
  };
  auto [queue, one] = on("/cpu:1", [&] {
    Output queue = fifo_queue(g, {DType::f64}, {.shapes = {PartialShape::scalar()}});
    return std::pair{queue, dequeue(queue, {DType::f64}, {.shapes = {PartialShape::scalar()}})[0]};
  });
  auto put = [&, queue = queue](Output x) {
    return on("/cpu:1", [&] { return enqueue(queue, {x}); });
  };
  Output mapped = on("/cpu:0", [&] {
    return map(xs, [&](Output x) {
      put(x);
      return x;
    });
  });
  auto later = g.with_control({Op(mapped)});
  Op last = put(constant(g, -1.0));
  Cluster cluster = one_thread();
  cluster.devices = {"CPU", "CPU"};
  Session s(g, cluster);
  for (int k = 0; k < 50; ++k) {
    s.run({}, {last}, {{xs, Tensor::of<double>({2}, {1.0, 2.0})}});
    for (double x : {1.0, 2.0, -1.0}) CHECK(s.run({one})[0].item<double>() == x);
  }
}

TEST_CASE("a function whose nodes stay with its argument is called with what is fed") {
  const Place& place = kPlaces[1];
  Graph g;
  Output x = placeholder<float>(g, PartialShape::scalar(), "x");
  Function negative = g.function("negative", {f32_scalar}, {f32_scalar}, [&](Function&, Output k) {
    auto with = g.with_colocation(Op(k).name());
    return abs(-k);
  });
  Output there = node(g, place.second, "Neg", {x}).output(), here = negative(x);
  {
    auto first = g.with_device(place.first);
    here = here + negative(x);
  }
  PlacedSession s(g, place);
  auto alone = s->compile({negative(x)}, {}, {x}), both = s->compile({there, here}, {}, {x});
  CHECK(alone.run({Tensor::scalar(2.5f)})[0].item<float>() == 2.5f);
  auto got = both.run({Tensor::scalar(2.5f)});
  CHECK(got[0].item<float>() == -2.5f);
  CHECK(got[1].item<float>() == 5);
}
