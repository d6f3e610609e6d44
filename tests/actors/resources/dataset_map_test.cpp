// Functions of the graph in input pipelines: what they compute, draw, and how they fail.
#include <doctest/doctest.h>

#include <atomic>
#include <deque>
#include <set>

#include "ops/api.hpp"
#include "ops/data/data.hpp"
#include "tests/actors/sim/world.hpp"
#include "tests/actors/support/sessions.hpp"

using namespace troupe;
using namespace troupe::test;

namespace {

data::Examples count_to(std::int64_t n) {
  Tensor rows = Tensor::make(DType::i64, Shape{n}).value();
  for (std::int64_t i = 0; i < n; ++i) rows.mutable_data<std::int64_t>()[i] = i;
  return data::tensors({rows});
}

std::vector<std::int64_t> numbers(const Tensor& t) {
  return {t.span<std::int64_t>().begin(), t.span<std::int64_t>().end()};
}

std::string thrown_by(const std::function<void()>& f) {
  try {
    f();
  } catch (const Error& e) {
    return e.what();
  }
  return "nothing was thrown";
}

bool has(const std::string& text, const char* part) {
  INFO(text);
  CHECK(text.find(part) != std::string::npos);
  return text.find(part) != std::string::npos;
}

}  // namespace

TEST_CASE("a map gives what its function makes of each example, at any place among the stages") {
  for (const Place& place : kPlaces) {
    INFO(place.name);
    Graph g;
    auto here = g.with_device(place.second);
    Function collatz = g.function("collatz", {i64_scalar}, {i64_scalar}, [](Function&, Output x) {
      return cond(
          mod(x, x * 0 + 2) == 0, [&] { return x / 2; }, [&] { return 3 * x + 1; });
    });
    // Two of it, then the number of turns until 1.
    auto turns = count_to(12)
                     .skip(1)
                     .map(collatz)
                     .map(g, [&](Output x) { return collatz(x); })
                     .map(g,
                          [&](Output x) {
                            auto [n, last] = while_loop(
                                std::tuple{x * 0, x}, [](Output, Output v) { return v != 1; },
                                [&](Output n, Output v) {
                                  return std::tuple{n + 1, collatz(v)};
                                });
                            return std::pair{x, n};
                          })
                     .batch(4)
                     .prefetch(2)
                     .outputs<2>(g);
    // Of batches, and the other way round; another dtype and shape.
    auto [half, whole] = count_to(6)
                             .batch(3)
                             .map(g,
                                  [](Output x) {
                                    return std::pair{cast<float>(reshape(x, {3, 1})) / 2.0f, x};
                                  })
                             .outputs<2>(g, "other");
    CHECK(half.dtype() == DType::f32);
    CHECK(half.shape() == PartialShape{3, 1});
    PlacedSession s(g, place);
    auto step = s->compile({turns[0], turns[1]});
    std::vector<std::int64_t> x, n;
    for (int i = 0; i < 3; ++i) {
      auto batch = step.run();
      for (std::int64_t v : numbers(batch[0])) x.push_back(v);
      for (std::int64_t v : numbers(batch[1])) n.push_back(v);
    }
    auto next = [](std::int64_t v) { return v % 2 == 0 ? v / 2 : 3 * v + 1; };
    for (std::int64_t i = 0; i < 11; ++i) {
      std::int64_t v = next(next(i + 1)), count = 0;
      CHECK(x[std::size_t(i)] == v);
      for (; v != 1; v = next(v)) ++count;
      CHECK(n[std::size_t(i)] == count);
    }
    auto both = s->run({half, whole});
    CHECK(Tensor::same(both[0], Tensor::of<float>({3, 1}, {0, 0.5f, 1})));
    CHECK(numbers(both[1]) == std::vector<std::int64_t>{0, 1, 2});
  }
}

TEST_CASE("a map may return its arguments, one of them twice, or constants") {
  Graph g;
  Tensor x = Tensor::of<std::int64_t>({2}, {5, 6}), y = Tensor::of<float>({2}, {1, 2});
  auto out = data::tensors({x, y})
                 .map(g,
                      [](Output a, Output b) {
                        return std::vector<Output>{b, a, b, constant(a.graph(), std::int64_t{7})};
                      })
                 .map(g, [](const std::vector<Output>& v) { return v; })
                 .outputs<4>(g);
  Session s(g, one_thread());
  auto step = s.compile({out[0], out[1], out[2], out[3]});
  for (int i = 0; i < 2; ++i) {
    auto [b, a, again, seven] = step.run<float, std::int64_t, float, std::int64_t>();
    CHECK(a == 5 + i);
    CHECK(b == float(1 + i));
    CHECK(again == b);
    CHECK(seven == 7);
  }
}

TEST_CASE("what a map draws belongs to the element and its pass, whoever makes it and when") {
  auto build = [](Graph& g, const Place& place) {
    auto here = g.with_device(place.second);
    auto noise = [](Output x) { return x + random_uniform(x.graph(), PartialShape::scalar()); };
    auto zero = data::tensors({Tensor::of<float>({6}, {0, 0, 0, 0, 0, 0})});
    // Nodes of the two functions have the same names.
    return data::interleave({zero.map(g, noise).shuffle(3), zero.map(g, noise)})
        .repeat()
        .batch(4)
        .prefetch(3)
        .outputs<1>(g)[0];
  };
  std::vector<std::vector<Tensor>> all;
  for (const Place& place : kPlaces) {
    INFO(place.name);
    JobState saved;
    std::vector<Tensor>& whole = all.emplace_back();
    {
      Graph g(3);
      Output x = build(g, place);
      Variable v = variable(g, "v", Tensor::scalar(0.0f));
      PlacedSession s(g, place);
      s->init();
      auto step = s->compile({x, v.value()});
      for (int i = 0; i < 9; ++i) {
        if (i == 4) saved = value_or_throw(s->try_state());
        whole.push_back(step.run()[0]);
      }
    }
    Graph g(3);
    Output x = build(g, place);
    Variable v = variable(g, "v", Tensor::scalar(0.0f));
    PlacedSession s(g, place);
    s->restore(saved.variables, saved.committed, saved.datasets);
    auto step = s->compile({x, v.value()});
    for (std::size_t i = 4; i < whole.size(); ++i) CHECK(Tensor::same(step.run()[0], whole[i]));
  }
  std::set<float> drawn;
  for (std::size_t i = 0; i < 9; ++i) {
    CHECK(Tensor::same(all[0][i], all[1][i]));
    for (float x : all[0][i].span<float>()) drawn.insert(x);
  }
  CHECK(drawn.size() == 36);  // no two alike
}

TEST_CASE("what a map's function asserts holds, whether or not a result needs it") {
  Graph g;
  Output x = count_to(3)
                 .map(g,
                      [](Output i) {
                        assert_(i != 1, {.message = "it is one"});
                        return i;
                      })
                 .outputs<1>(g)[0];
  Session s(g, one_thread());
  auto step = s.compile({x});
  CHECK(step.run()[0].item<std::int64_t>() == 0);
  CHECK(has(step.try_run().status().text(), "it is one"));
}

TEST_CASE("an element that a map fails on fails its run by node and line; others are there") {
  const auto not_two = [](Output i) {
    assert_(i != 2, {.message = "it is two"});
    return i;
  };
  for (const Place& place : kPlaces) {
    INFO(place.name);
    Graph g;
    auto here = g.with_device(place.second);
    Output x = count_to(5).map(g, not_two).prefetch(2).outputs<1>(g)[0];
    PlacedSession s(g, place);
    auto step = s->compile({x});
    auto next = [&] { return step.run()[0].item<std::int64_t>(); };
    CHECK(next() == 0);
    CHECK(next() == 1);
    for (int again = 0; again < 2; ++again) {
      const std::string text = step.try_run().status().text();
      CHECK(has(text, "it is two"));
      CHECK(has(text, "Assert"));
      CHECK(has(text, "dataset_map_test.cpp:"));
    }
    step.rewind();
    CHECK(next() == 0);
  }
  // Behind the one that fails.
  Graph g;
  Output x = count_to(5).map(g, not_two).skip(3).outputs<1>(g)[0];
  Session s(g, one_thread());
  CHECK(s.run({x})[0].item<std::int64_t>() == 3);
}

TEST_CASE("a map is refused, with the line, where its function wants more than elements") {
  Graph g, other;
  const data::Examples rows = count_to(3);
  Output around = placeholder<std::int64_t>(g, PartialShape::scalar(), "around");
  CHECK(has(thrown_by([&] { rows.map(g, [&](Output x) { return x + around; }); }), "'around'"));
  Variable v = variable(g, "v", Tensor::scalar(std::int64_t{1}));
  const std::string text = thrown_by([&] { rows.map(g, [&](Output x) { return x + v.value(); }); });
  CHECK(has(text, "'v"));
  CHECK(has(text, "dataset_map_test.cpp:"));
  CHECK(has(thrown_by([&] { rows.map(other, [](Output x) { return x; }).outputs(g); }),
            "another graph"));
  CHECK(has(thrown_by([&] {
              data::interleave({rows.map(g, [](Output x) { return x; }),
                                rows.map(other, [](Output x) { return x; })})
                  .outputs(g);
            }),
            "another graph"));
  CHECK(has(thrown_by([&] { rows.map(g, [](Output x, Output y) { return x + y; }); }), ".cpp:"));
  CHECK(has(thrown_by([&] { rows.map(g, [](Output x, Output y) { return x + y; }); }), "2 values"));
  Function two = g.function("two", {i64_scalar, i64_scalar}, {i64_scalar},
                            [](Function&, Output a, Output b) { return a + b; });
  CHECK(has(thrown_by([&] { rows.map(two); }), "takes i64[], i64[], and examples are i64[]"));
  CHECK(has(thrown_by([&] { rows.map(g, [](Output) { return std::vector<Output>(); }); }),
            "returns nothing"));
  CHECK(g.def().functions.size() == 2);  // that of the interleave, and `two`
  Session s(g, one_thread());
  CHECK(s.run({rows.outputs<1>(g)[0]})[0].item<std::int64_t>() == 0);
}

TEST_CASE("a function that is no map of the dataset, or none, is refused by node and line") {
  Graph g;
  Output q = fifo_queue(g, {DType::i64});
  Function two = g.function("two", {i64_scalar, i64_scalar}, {i64_scalar},
                            [](Function&, Output a, Output b) { return a + b; });
  Function takes = g.function("takes", {i64_scalar}, {i64_scalar}, [&](Function&, Output x) {
    return x + sum(dequeue(q, {DType::i64})[0]);
  });
  Function file =
      g.function("file", {ValueType{DType::string, PartialShape::scalar()}}, {i64_scalar},
                 [](Function&, Output x) {
                   return restore(x, {"a"}, {DType::i64}, {.shapes = {PartialShape::scalar()}});
                 });
  Function half = g.function("half", {i64_scalar}, {f32_scalar},
                             [](Function&, Output x) { return cast<float>(x) / 2.0f; });
  auto refused = [&](const std::string& stage, std::vector<std::string> functions) {
    return thrown_by([&] {
      const Tensor one = Tensor::of<std::int64_t>({1}, {1});
      const std::string bytes(static_cast<const char*>(one.raw()), one.bytes());
      Op handle =
          g.add(NodeSpec{.op = "DataPipeline",
                         .attrs = {{"stages", std::vector<std::string>{"tensors i64 [1]", stage}},
                                   {"tensors", Tensor::of<std::string>({1}, {bytes})},
                                   {"functions", functions}},
                         .name = "wrong",
                         .site = Site::here()});
      Output x =
          g.add(NodeSpec{.op = "NextElement",
                         .inputs = {handle.output()},
                         .attrs = {{"types", std::vector<DType>{DType::i64}},
                                   {"shapes", std::vector<PartialShape>{PartialShape::scalar()}}},
                         .site = Site::here()})
              .output();
      Session s(g, one_thread());
      s.run({x});
    });
  };
  auto named = [&](const std::string& text, const char* part) {
    return has(text, part) && has(text, "'wrong") && has(text, "dataset_map_test.cpp:");
  };
  CHECK(named(refused("map i64 []", {"none"}), "there is no function 'none'"));
  CHECK(named(refused("map i64 []", {"takes"}), "elements alone"));
  CHECK(named(refused("map i64 []", {"file"}), "outside"));
  CHECK(has(refused("map i64 []", {}), ".cpp:"));
  CHECK(has(refused("map i64 []", {}), "DataPipeline: 0 functions for 1 stages that call one"));
  CHECK(has(refused("take 1", {"two"}), "DataPipeline: 1 functions for 0 stages that call one"));
  // What a function takes and returns shows when the dataset is opened.
  CHECK(has(refused("map i64 []", {"two"}), "a map takes i64[], i64[], and examples are i64[]"));
  CHECK(has(refused("map i64 []", {"half"}), "a map returns f32[], not i64[]"));
}

TEST_CASE("datasets that differ in what their functions call alone are two") {
  World world(1, 2);
  Graph graphs[2];
  std::deque<Client> clients;
  for (std::int64_t c : {0, 1}) {
    Graph& g = graphs[c];
    Function inner = g.function("inner", {i64_scalar}, {i64_scalar},
                                [c](Function&, Output x) { return x + 10 * (c + 1); });
    Output x = count_to(3).map(g, [&](Output i) { return inner(i); }).outputs<1>(g)[0];
    clients.emplace_back(world.master(), std::uint64_t(c + 1), g).compile("x", {x}, {}).run("x");
  }
  REQUIRE(world.run({&clients[0], &clients[1]}).ok());
  for (std::int64_t c : {0, 1}) {
    const auto got = clients[std::size_t(c)].fetched()[0][0].item<std::int64_t>();
    CHECK(got / 10 == c + 1);
  }
}

TEST_CASE("a function of a map calls itself, keeps to the step's memory, and came by extending") {
  Cluster cluster = one_thread();
  cluster.step_memory = 64 << 20;
  Graph g;
  Output first = count_to(4).outputs<1>(g, "first")[0];
  Session s(g, cluster);
  CHECK(s.run({first})[0].item<std::int64_t>() == 0);
  Function factorial =
      g.function("factorial", {i64_scalar}, {i64_scalar}, [](Function& self, Output n) {
        return cond(
            n <= 1, [&] { return n * 0 + 1; }, [&] { return n * self(n - 1); });
      });
  Output x = count_to(4).skip(3).map(factorial).outputs<1>(g, "second")[0];
  CHECK(s.run({x})[0].item<std::int64_t>() == 6);
  Output large =
      count_to(4)
          .map(g,
               [](Output i) {
                 return sum(cast<float>(i) * random_uniform(i.graph(), PartialShape{64 << 20}));
               })
          .outputs<1>(g, "third")[0];
  const Status refused = s.try_run({large}).status();
  CHECK_MESSAGE(refused.code() == Code::resource_exhausted, refused.text());
}

TEST_CASE("a kernel of a map that throws fails the run, and elements keep their places") {
  static const OpTable table = [] {
    OpTable all = ops::builtin();
    all.add({.name = "ThrowOnce",
             .in = {"x: i64"},
             .out = {"y: i64"},
             .shape = same_shape,
             .stateful = true})
        .cpu(kernel<[](KernelContext& c) -> Status {
          static std::atomic<int> calls = 0;
          if (++calls == 2) throw std::bad_alloc();
          c.set_output(0, c.input(0));
          return ok_status();
        }>);
    return all;
  }();
  World world(1, 2, table);
  GraphBuilder g(table.ops);
  Output x =
      count_to(4).map(g, [](Output i) { return i.graph().add("ThrowOnce", {i}); }).outputs<1>(g)[0];
  Client client(world.master(), 1, g);
  client.compile("x", {x}, {});
  for (int i = 0; i < 5; ++i) client.try_run("x", kNever);
  REQUIRE(world.run({&client}).ok());
  std::vector<std::int64_t> got;
  for (std::size_t i = 0; i < 5; ++i) {
    if (i == 1) {
      CHECK(client.ended()[i].code() == Code::resource_exhausted);
    } else {
      REQUIRE_MESSAGE(client.ended()[i].ok(), client.ended()[i].text());
      got.push_back(client.fetched()[i][0].item<std::int64_t>());
    }
  }
  CHECK(got == std::vector<std::int64_t>{0, 1, 2, 3});
}

TEST_CASE("a map that does not end ends with the session") {
  for (const Place& place : kPlaces) {
    INFO(place.name);
    Graph g;
    auto here = g.with_device(place.second);
    Output x = count_to(3)
                   .map(g,
                        [](Output i) {
                          return while_loop(
                              i, [](Output v) { return v >= 0; }, [](Output v) { return v + 1; });
                        })
                   .outputs<1>(g)[0];
    PlacedSession s(g, place);
    auto step = s->compile({x});
    RunOptions options;
    options.timeout = std::chrono::milliseconds(20);
    CHECK(step.try_run({}, options).status().code() == Code::deadline_exceeded);
  }
}
