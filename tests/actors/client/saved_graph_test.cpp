// A session of a graph that was saved, without the code that built it.
#include <doctest/doctest.h>

#include <fstream>
#include <random>

#include "ops/api.hpp"
#include "serialization/graph_io.hpp"
#include "tests/actors/support/sessions.hpp"
#include "tests/serialization/temporary.hpp"

using namespace troupe;
using namespace troupe::test;
using troupe::testing::TemporaryDir;

namespace {

struct Net : nn::Module {
  using Module::Module;
  nn::Linear hidden{*this, "hidden", 2, 3}, out{*this, "out", 3, 1};
  Output operator()(Output x) const { return out(tanh(hidden(x))); }
};

GraphDef through_file(const Graph& g) {
  TemporaryDir dir;
  throw_if_error(write_graph(dir.path("g"), g.def()));
  return value_or_throw(read_graph(dir.path("g")));
}

double item(const std::vector<Tensor>& fetched) { return fetched.at(0).item<double>(); }

}  // namespace

TEST_CASE("a session of a saved graph initialises, trains and answers as the one that saved it") {
  for (const Place& place : kPlaces) {
    CAPTURE(place.name);
    Graph g(7);
    Net net{g.scope("net")};
    Output x = placeholder<float>(g, {-1, 2}, "x");
    Output y = net(x);
    Output loss = mean(square(y - 1));
    Op train = optim::Adam{.lr = 0.1}.minimize(loss);
    Graph again(through_file(g));
    CHECK(again.initializers() == g.initializers());
    const Tensor fed = Tensor::of<float>({2, 2}, {1, 2, 3, 4});
    PlacedSession built(g, place), loaded(again, place);
    built->init(), loaded->init();
    for (int i = 0; i < 3; ++i) {
      const auto want = built->run({loss}, {train}, {{x, fed}});
      const auto got = loaded->run({again.output(loss.name())}, {again.find(train.name())},
                                   {{again.output("x"), fed}});
      CHECK(Tensor::same(got[0], want[0]));
    }
    CHECK(Tensor::same(loaded->run({again.output(y.name())}, {}, {{again.output("x"), fed}})[0],
                       built->run({y}, {}, {{x, fed}})[0]));
  }
}

TEST_CASE("a variable of a saved graph begins as it did where its initializer's name was taken") {
  Graph g;
  g.add(NodeSpec{.op = "Identity", .inputs = {constant(g, 1.f)}, .name = "w/init"});
  Variable w = variable(g, "w", 2.f);
  {
    auto inside = g.with_scope("w/");
    g.add(NodeSpec{.op = "Assign", .inputs = {w.handle(), constant(g, 3.f)}, .name = "init"});
  }
  Graph again(through_file(g));
  CHECK(again.initializers() == g.initializers());
  Session s(again, one_thread());
  s.init();
  CHECK(s.run({again.output(w.value().name())})[0].item<float>() == 2);
}

TEST_CASE("a session owns the saved graph that it is made of, and restores its variables") {
  TemporaryDir dir;
  Tensor want;
  const Tensor fed = Tensor::of<float>({1, 2}, {0.5f, -1});
  {
    Graph g(3);
    Net net{g.scope("net")};
    Output x = placeholder<float>(g, {-1, 2}, "question");
    Output y = net(x);
    Output answer = g.add(NodeSpec{.op = "Identity", .inputs = {y}, .name = "answer"}).output();
    Session s(g, one_thread());
    s.init();
    want = s.run({answer}, {}, {{x, fed}})[0];
    s.save(dir.path("net.safetensors"));
    throw_if_error(write_graph(dir.path("net.graph"), g.def()));
  }
  Session s(value_or_throw(read_graph(dir.path("net.graph"))), one_thread());
  s.restore(dir.path("net.safetensors"));
  auto step = s.compile({s.graph().output("answer")}, {}, {s.graph().output("question")});
  CHECK(Tensor::same(step.run({fed})[0], want));
  // It can grow, under names of its own.
  Output twice = 2 * s.graph().output("answer");
  const auto doubled = s.run({twice}, {}, {{s.graph().output("question"), fed}});
  CHECK(doubled[0].item<float>() == 2 * want.item<float>());
}

TEST_CASE("branches, loops and functions of a saved graph run, are called and have gradients") {
  Graph g;
  Output x = placeholder<double>(g, Shape{}, "x");
  Output branch = cond(
      x > 0.0, [&] { return x * x; }, [&] { return -x; });
  auto [i, power] = while_loop(
      std::tuple{constant(g, 0), constant(g, 1.0)}, [&](Output i, Output) { return i < 3; },
      [&](Output i, Output p) {
        return std::tuple{i + 1, p * x};
      });
  Function cube =
      g.function("cube", {f64_scalar}, {f64_scalar}, [](Function&, Output k) { return k * k * k; });
  Function fact = g.function("fact", {f64_scalar}, {f64_scalar}, [](Function& self, Output k) {
    return cond(
        k < 1.0, [&] { return ones_like(k); }, [&] { return k * self(k - 1.0); });
  });
  Output all = branch + power + cube(x) + fact(x);
  Graph again(through_file(g));
  Output y = again.output(all.name()), from = again.output("x");
  Output more = Function(again, "cube")(from) + Function(again, "fact")(from) + y;
  Output slope = gradients(more, {from})[0];
  Session s(again, one_thread());
  const std::vector<Feed> two{{from, Tensor::scalar(2.0)}};
  // x^2 + x^3 + x^3 + x (x-1) (x-2)... at 2, where the last factor is 1.
  CHECK(item(s.run({y}, {}, two)) == 4 + 8 + 8 + 2);
  CHECK(item(s.run({more}, {}, two)) == 22 + 8 + 2);
  // 2 x + 3 x^2 + 2 * 3 x^2 + 2 * (2 x - 1)
  CHECK(item(s.run({slope}, {}, two)) == doctest::Approx(4 + 12 + 24 + 6).epsilon(1e-12));
}

TEST_CASE("a loop of Switch and Merge in a saved graph runs") {
  Graph g;
  Output x = placeholder<double>(g, Shape{}, "x");
  auto enter = [&](Output value, bool same) {
    return g.add("Enter", {value}, {{"frame_name", "doubling"}, {"is_constant", same}});
  };
  Output first = enter(x, false), limit = enter(constant(g, 100.0), true);
  Output v = g.add("Merge", {first, first});
  Output again = g.add("LoopCond", {v < limit});
  Op side = g.add(NodeSpec{.op = "Switch", .inputs = {v, again}});
  throw_if_error(g.close_loop(v.node(), 1, g.add("NextIteration", {side.output(1) * 2.0})));
  Output last = g.add("Leave", {side.output(0)});
  Graph loaded(through_file(g));
  Session s(loaded, one_thread());
  CHECK(item(s.run({loaded.output(last.name())}, {},
                   {{loaded.output("x"), Tensor::scalar(3.0)}})) == 192);
}

TEST_CASE("of a damaged file comes an error, or a graph that can be built on") {
  const std::uint64_t seed = std::random_device{}();
  INFO("seed " << seed);
  std::mt19937_64 random(seed);
  Graph g;
  Output x = placeholder<double>(g, Shape{}, "x");
  Variable w = variable(g, "w", 2.0);
  Output y = cond(
      x > 0.0, [&] { return x * w; }, [&] { return -x; });
  auto [i, z] = while_loop(
      std::tuple{constant(g, 0), y}, [&](Output i, Output) { return i < 3; },
      [&](Output i, Output p) {
        return std::tuple{i + 1, p * x};
      });
  optim::Sgd{}.minimize(z);
  TemporaryDir dir;
  throw_if_error(write_graph(dir.path("g"), g.def()));
  // Without its head, as earlier versions wrote it: no checksum finds what is damaged.
  const std::string whole = dir.read("g").substr(24);
  int graphs = 0;
  for (int n = 0; n < 500; ++n) {
    std::string bytes = whole;
    for (int flips = 0; flips < 1 + n % 3; ++flips)
      bytes[random() % bytes.size()] ^= char(1 << random() % 8);
    if (n % 10 == 0) bytes.resize(random() % bytes.size());
    std::ofstream(dir.path("g"), std::ios::binary) << bytes;
    auto def = read_graph(dir.path("g"));
    if (!def.ok()) {
      CHECK(def.status().code() == Code::data_loss);
      continue;
    }
    try {
      Graph again(std::move(*def));
      ++graphs;
      for (const NodeDef& node : again.def().nodes)
        for (std::size_t k = 0; k < node.out_types.size(); ++k)
          CHECK(
              again.output(Output(&again, {again.find(node.name).node(), std::uint32_t(k)}).name())
                  .dtype() == node.out_types[k]);
      (void)gradients(sum(cast<double>(again.output(z.name()))), {again.output("x")});
    } catch (const Error& error) {
      CHECK_FALSE(error.status().message().empty());
    }
  }
  CHECK(graphs > 0);
}

TEST_CASE("a gradient function of a saved graph runs, and is not differentiated again") {
  Graph g;
  Output x = placeholder<double>(g, Shape{}, "x");
  Output y = cond(
      x > 0.0, [&] { return x * x * x; }, [&] { return -x; });
  Output slope = gradients(y, {x})[0];
  Graph again(through_file(g));
  Output loaded = again.output(slope.name());
  Session s(again, one_thread());
  CHECK(item(s.run({loaded}, {}, {{again.output("x"), Tensor::scalar(2.0)}})) == 12);
  try {
    (void)gradients(loaded, {again.output("x")});
    FAIL("nothing was thrown");
  } catch (const Error& error) {
    says(error.status(), Code::unimplemented, "gradient function of a saved graph");
  }
}

TEST_CASE("names of a saved graph are not given out again, and unknown ones are told from others") {
  Graph g;
  {
    auto inside = g.with_scope("net");
    placeholder<float>(g, Shape{}, "x");
  }
  Graph again(through_file(g));
  CHECK(placeholder<float>(again, Shape{}, "net/x").name() == "net/x_1");
  CHECK(again.scope("net").prefix() == "net_1/");
  for (const auto& [wanted, code, what] :
       {std::tuple{"net/y", Code::not_found, "did you mean net/x"},
        std::tuple{"net/x:1", Code::not_found, "has no output 1"},
        std::tuple{"^net/x", Code::invalid_argument, "control edge"},
        std::tuple{"net/x:x", Code::invalid_argument, ""}}) {
    const char* const name = wanted;
    CAPTURE(name);
    try {
      (void)again.output(name);
      FAIL("nothing was thrown");
    } catch (const Error& error) {
      says(error.status(), code, what);
      CHECK(error.status().site().known());
    }
  }
}

TEST_CASE("a graph that no builder could have made is refused before a session starts") {
  Graph g;
  placeholder<float>(g, Shape{}, "x");
  GraphDef def = g.def();
  def.nodes[0].op = "NoSuchOp";
  try {
    Session s(def, one_thread());
    FAIL("nothing was thrown");
  } catch (const Error& error) {
    says(error.status(), Code::not_found, "NoSuchOp");
    says(error.status(), Code::not_found, "in node 'x'");
  }
}
