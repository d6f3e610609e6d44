// Variables that loops write: what bodies see of them, and what is there behind the loop.
#include <doctest/doctest.h>

#include <cmath>

#include "ops/api.hpp"
#include "ops/optim/optim.hpp"
#include "tests/actors/support/sessions.hpp"

using namespace troupe;
using namespace troupe::test;

namespace {

using Body = std::function<void(Output)>;

// So many iterations; what the body returns is what comes after all that it does.
Output repeat(Graph& g, const Output& times, const Body& body) {
  return while_loop(
      constant(g, 0), [&](Output i) { return i < times; },
      [&](Output i) {
        body(i);
        return i + 1;
      });
}

}  // namespace

TEST_CASE("what a write in a loop leaves is carried to the next iteration") {
  Graph g;
  Output n = placeholder<std::int32_t>(g, PartialShape::scalar(), "n");
  Variable v = variable(g, "v", Tensor::scalar(1.0)),
           seen = variable(g, "seen", Tensor::scalar(0.0));
  Output loop = repeat(g, n, [&](Output) {
    Op twice = assign_add(v, read(v));
    assign_add(seen, read(v, {twice}));
  });
  Session s(g, one_thread());
  s.init();
  s.run({loop}, {}, {{n, Tensor::scalar(3)}});
  CHECK(now(s, v) == 8);
  CHECK(now(s, seen) == 2 + 4 + 8);
  s.run({loop}, {}, {{n, Tensor::scalar(0)}});
  CHECK(now(s, v) == 8);
  s.run({loop}, {}, {{n, Tensor::scalar(1)}});
  CHECK(now(s, v) == 16);
}

TEST_CASE(
    "a read in a loop sees the beginning of its iteration, or the write that it comes after") {
  Graph g;
  Variable v = variable(g, "v", Tensor::scalar(1.0));
  auto [i, before, after, outside] = while_loop(
      std::tuple{constant(g, 0), constant(g, 0.0), constant(g, 0.0), constant(g, 0.0)},
      [&](Output i, Output, Output, Output) { return i < 3; },
      [&, old = v.value()](Output i, Output before, Output after, Output outside) {
        Op write = assign(v, read(v) * 10.0);
        return std::tuple{i + 1, before * 1000.0 + v, after * 1000.0 + read(v, {write}),
                          outside * 1000.0 + old};
      });
  Session s(g, one_thread());
  s.init();
  auto out = s.run({before, after, outside});
  CHECK(out[0].item<double>() == 1'010'100);
  CHECK(out[1].item<double>() == 10'101'000);
  CHECK(out[2].item<double>() == 1'001'001);
  CHECK(now(s, v) == 1000);
}

TEST_CASE("a loop gives a variable its first value") {
  Graph g;
  Output n = placeholder<std::int32_t>(g, PartialShape::scalar(), "n");
  Variable v = variable(g, "v", Tensor::scalar(7.0));
  Output loop = repeat(g, n, [&](Output i) {
    Op set = assign(v, cast<double>(i));
    assign_add(v, read(v, {set}));
  });
  Output uses = repeat(g, n, [&](Output) { assign_add(v, constant(g, 1.0)); });
  Session s(g, one_thread());  // nobody runs the initialisers
  s.run({loop}, {}, {{n, Tensor::scalar(0)}});
  CHECK(s.try_run({read(v)}).status().code() == Code::failed_precondition);
  s.run({uses}, {}, {{n, Tensor::scalar(0)}});
  auto failed = s.try_run({uses}, {}, {{n, Tensor::scalar(2)}});
  CHECK(failed.status().text().find("ninitialized value v") != std::string::npos);
  s.run({loop}, {}, {{n, Tensor::scalar(4)}});
  CHECK(now(s, v) == 6);
  s.run({uses}, {}, {{n, Tensor::scalar(2)}});
  CHECK(now(s, v) == 8);
}

TEST_CASE("a loop after a write reads what was written") {
  Graph g;
  Variable v = variable(g, "v", Tensor::scalar(1.0));
  Op set = assign(v, constant(g, 5.0));
  auto sum = [&](bool writes) {
    auto behind = g.with_control({set});
    return std::get<1>(while_loop(
        std::tuple{constant(g, 0), constant(g, 0.0)}, [&](Output i, Output) { return i < 2; },
        [&](Output i, Output sum) {
          if (writes) assign_add(v, constant(g, 1.0));
          return std::tuple{i + 1, sum + v};
        }));
  };
  Output reads = sum(false), writes = sum(true);
  Session s(g, one_thread());
  s.init();
  CHECK(s.run({reads})[0].item<double>() == 10);
  CHECK(now(s, v) == 5);
  s.run({}, {assign(v, constant(g, 1.0))});
  CHECK(s.run({writes})[0].item<double>() == 11);
  CHECK(now(s, v) == 7);
}

TEST_CASE("a loop adds what a write before it left") {
  Graph g;
  Variable v = variable(g, "v", Tensor::scalar(1.0));
  assign(v, constant(g, 100.0));  // of another run
  Op add = assign_add(v, constant(g, 10.0));
  Output loop = repeat(g, constant(g, 3), [&](Output) { assign_add(v, read(v)); });
  Op last = assign_add(v, constant(g, 0.5));
  Session s(g, one_thread());
  s.init();
  s.run({loop}, {add, last});  // in the order of the program: the loop is one write among these
  CHECK(now(s, v) == 88.5);
}

TEST_CASE("what comes after a loop sees what it wrote") {
  Graph g;
  Variable v = variable(g, "v", Tensor::scalar(0.0));
  Output loop = repeat(g, constant(g, 3), [&](Output) { assign_add(v, constant(g, 1.0)); });
  Output by_control = read(v, {Op(loop)});
  Output by_data = cond(
      loop > 2, [&] { return read(v); }, [&] { return constant(g, -1.0); });
  Output snapshot = read(v);
  Session s(g, one_thread());
  s.init();
  auto out = s.run({by_control, by_data, snapshot});
  CHECK(out[0].item<double>() == 3);
  CHECK(out[1].item<double>() == 3);
  CHECK(out[2].item<double>() == 0);
  CHECK(now(s, v) == 3);
}

TEST_CASE("the condition of a loop reads what its body wrote") {
  Graph g;
  Variable v = variable(g, "v", Tensor::scalar(1.0));
  Output trips = while_loop(
      constant(g, 0), [&](Output) { return v < 100.0; },
      [&](Output i) {
        assign_add(v, v);
        return i + 1;
      });
  Session s(g, one_thread());
  s.init();
  CHECK(s.run({trips})[0].item<std::int32_t>() == 7);
  CHECK(now(s, v) == 128);
  CHECK(s.run({trips})[0].item<std::int32_t>() == 0);
  CHECK(now(s, v) == 128);
}

TEST_CASE("writes of two variables in a loop keep their order") {
  Graph g;
  Variable a = variable(g, "a", Tensor::scalar(1.0)), b = variable(g, "b", Tensor::scalar(1.0));
  Output loop = repeat(g, constant(g, 4), [&](Output) {
    Op first = assign_add(a, read(b));
    Op second = assign_add(b, read(a, {first}));
    assign_sub(a, read(b, {second}) * 0.5);
  });
  Session s(g, one_thread());
  s.init();
  s.run({loop});
  double x = 1, y = 1;
  for (int i = 0; i < 4; ++i) x += y, y += x, x -= y * 0.5;
  CHECK(now(s, a) == x);
  CHECK(now(s, b) == y);
}

TEST_CASE("branches, loops and calls in a loop write") {
  Graph g;
  Output n = placeholder<std::int32_t>(g, PartialShape::scalar(), "n");
  Variable v = variable(g, "v", Tensor::scalar(0.0)), odd = variable(g, "odd", Tensor::scalar(7.0)),
           inner = variable(g, "inner", Tensor::scalar(0.0));
  Function add = g.function("add", {f64_scalar}, {f64_scalar}, [&](Function&, Output x) {
    Op write = assign_add(v, x);
    return read(v, {write});
  });
  Output loop = repeat(g, n, [&](Output i) {
    auto [out, sum] = cond(
        mod(i, constant(g, 2)) == 1,
        [&] {
          return std::tuple{identity(read(odd)), add(constant(g, 10.0))};
        },
        [&] {
          assign(odd, cast<double>(i));
          return std::tuple{constant(g, 0.0), constant(g, 0.0)};
        });
    assign_add(v, out);
    repeat(g, i, [&](Output j) { assign_add(inner, cast<double>(i * 10 + j) + read(v)); });
  });
  Session s(g, one_thread());
  s.init();
  auto run = [&](int times) { s.run({loop}, {}, {{n, Tensor::scalar(times)}}); };
  double vs = 0, odds = 7, inners = 0;
  auto expected = [&](int times) {
    for (int i = 0; i < times; ++i) {
      double before = vs, out = 0;
      if (i % 2 == 1)
        out = odds, vs += 10;
      else
        odds = i;
      vs += out;
      for (int j = 0; j < i; ++j) inners += i * 10 + j + before;
    }
  };
  for (int times : {0, 1, 5}) {
    run(times);
    expected(times);
    CAPTURE(times);
    CHECK(now(s, v) == vs);
    CHECK(now(s, odd) == odds);
    CHECK(now(s, inner) == inners);
  }
}

TEST_CASE("a function that calls loops writes where it is called") {
  Graph g;
  Variable v = variable(g, "v", Tensor::scalar(1.0)), w = variable(g, "w", Tensor::scalar(1.0));
  Function doubled = g.function("doubled", {}, {f64_scalar}, [&](Function&) {
    Output i = repeat(g, constant(g, 2), [&](Output) { assign_add(v, read(v)); });
    return read(v, {Op(i)});
  });
  Output one = doubled.call({})[0];
  Op set = assign(w, one);
  Output other;
  {
    auto behind = g.with_control({set});
    other = doubled.call({})[0];
  }
  Session s(g, one_thread());
  s.init();
  auto out = s.run({one, other}, {set});
  CHECK(out[0].item<double>() == 4);
  CHECK(out[1].item<double>() == 16);
  CHECK(now(s, v) == 16);
  CHECK(now(s, w) == 4);
}

TEST_CASE("a loop trains: the whole of it is in the graph") {
  for (const char* how : {"sgd", "momentum", "adam", "schedule"}) {
    CAPTURE(how);
    auto optimizer = [&](Output loss) {
      if (how == std::string("sgd")) return optim::Sgd{.lr = 0.05}.minimize(loss);
      if (how == std::string("momentum"))
        return optim::Momentum{.lr = 0.02, .momentum = 0.9}.minimize(loss);
      if (how == std::string("adam")) return optim::Adam{.lr = 0.05}.minimize(loss);
      return optim::Sgd{.lr = optim::exponential_decay({.rate = 0.05, .factor = 0.5, .every = 4})}
          .minimize(loss);
    };
    auto values = [&](bool in_loop) {
      Graph g;
      Variable w = variable(g, "w", Tensor::of<float>({2}, {0.5f, -0.25f}));
      Variable b = variable(g, "b", Tensor::of<float>({2}, {0.25f, 0.5f}));
      auto step = [&] {
        Output y = w * w + b;
        return optimizer(sum(y * y));
      };
      Session s(g, one_thread());
      if (in_loop) {
        Output trained = repeat(g, constant(g, 6), [&](Output) { step(); });
        s.init();
        s.run({trained});
      } else {
        Op once = step();
        s.init();
        for (int i = 0; i < 6; ++i) s.run({}, {once});
      }
      auto out = s.run({read(w), read(b)});
      return std::vector<float>{out[0].data<float>()[0], out[0].data<float>()[1],
                                out[1].data<float>()[0], out[1].data<float>()[1]};
    };
    CHECK(values(true) == values(false));
  }
}

TEST_CASE("gradients go through a loop that writes, of what its writes do not make") {
  Graph g;
  Output x = placeholder<double>(g, PartialShape::scalar(), "x");
  Variable v = variable(g, "v", Tensor::scalar(1.0));
  auto [i, y] = while_loop(
      std::tuple{constant(g, 0), x}, [&](Output i, Output) { return i < 3; },
      [&](Output i, Output y) {
        assign_add(v, constant(g, 1.0));
        return std::tuple{i + 1, y * x * v};
      });
  Output slope = value_or_throw(gradients(std::vector{y}, std::vector{x}))[0];
  Output second = value_or_throw(gradients(std::vector{slope}, std::vector{x}))[0];
  Session s(g, one_thread());
  s.init();
  auto out = s.run({y, slope, second}, {}, {{x, Tensor::scalar(2.0)}});
  CHECK(out[0].item<double>() == 6 * 16);  // v is 1, 2, 3: 6 x^4
  CHECK(out[1].item<double>() == 24 * 8);
  CHECK(out[2].item<double>() == 72 * 4);
  CHECK(now(s, v) == 4);
  auto refused = gradients(std::vector{y}, std::vector{v.handle()});
  REQUIRE(!refused.ok());
  CHECK(refused.status().text().find("no gradient flows back through a write") !=
        std::string::npos);
  CHECK(refused.status().text().find("control_state_test.cpp") != std::string::npos);
}

TEST_CASE("gradients of a variable that a branch in a loop reads") {
  Graph g;
  Variable v = variable(g, "v", Tensor::scalar(3.0));
  auto [i, y] = while_loop(
      std::tuple{constant(g, 0), constant(g, 1.0)}, [&](Output i, Output) { return i < 4; },
      [&](Output i, Output y) {
        return std::tuple{i + 1, cond(
                                     mod(i, constant(g, 2)) == 0, [&] { return y * read(v); },
                                     [&] { return y + read(v); })};
      });
  Output slope = value_or_throw(gradients(std::vector{y}, std::vector{v.handle()}))[0];
  Output second = value_or_throw(gradients(std::vector{slope}, std::vector{v.handle()}))[0];
  Session s(g, one_thread());
  s.init();
  auto out = s.run({y, slope, second});
  CHECK(out[0].item<double>() == 21);  // (v + v) v + v
  CHECK(out[1].item<double>() == 13);
  CHECK(out[2].item<double>() == 4);
}

TEST_CASE("replicas do not write together in a loop of their own") {
  Graph g;
  Output queue = queue_on(g, "");
  Output fed = placeholder<float>(g, PartialShape::scalar(), "fed");
  Op put = enqueue(queue, {fed});
  Output n = cast<std::int32_t>(take_from(queue));
  Variable v = variable(g, "v", Tensor::scalar(0.0));
  Output own = repeat(g, n, [&](Output) { assign_add(v, constant(g, 1.0)); });
  Output alike = repeat(g, constant(g, 2), [&](Output) { assign_add(v, constant(g, 1.0)); });
  Session s(g, one_thread());
  s.init();
  for (float x : {2.0f, 3.0f}) s.run({}, {put}, {{fed, Tensor::scalar(x)}});
  s.compile({alike}, {}, {}, {.replicas = 2}).run();
  CHECK(now(s, v) == 2);
  auto step = s.try_compile({own}, {}, {}, {.replicas = 2});
  const Status refused = step.ok() ? step->try_run().status() : step.status();
  CHECK(refused.text().find("a loop that each replica goes through by itself") !=
        std::string::npos);
  CHECK(refused.text().find("control_state_test.cpp") != std::string::npos);
}

TEST_CASE("what a loop cannot do with variables is refused with the line") {
  Graph g;
  Variable v = variable(g, "v", Tensor::scalar(0.0));
  auto counting = [&] {
    return while_loop(
        constant(g, 0),
        [&](Output i) {
          assign_add(v, constant(g, 1.0));
          return i < 2;
        },
        [&](Output i) { return i + 1; });
  };
  Output in_condition = counting();
  Output in_inner_condition = repeat(g, constant(g, 2), [&](Output) { counting(); });
  Output on_a_side = repeat(g, constant(g, 2), [&](Output i) {
    Op sides = g.add(NodeSpec{.op = "Switch", .inputs = {cast<double>(i), i < 1}});
    assign(v, sides.output(0));
  });
  Session s(g, one_thread());
  s.init();
  for (auto& [loop, why] : {std::pair{in_condition, "the condition of a loop writes no variables"},
                            {in_inner_condition, "the condition of a loop writes no variables"},
                            {on_a_side, "on one side of a Switch; use cond"}}) {
    auto refused = s.try_run({loop});
    REQUIRE(!refused.ok());
    CHECK_MESSAGE(refused.status().text().find(why) != std::string::npos, refused.status().text());
    CHECK(refused.status().text().find("control_state_test.cpp") != std::string::npos);
  }
}
