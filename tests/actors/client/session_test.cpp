#include "actors/client/session.hpp"

#include <doctest/doctest.h>

#include <thread>

#include "ops/api/moving_average.hpp"
#include "ops/optim/optim.hpp"
#include "tests/actors/support/sessions.hpp"

using namespace troupe;
using namespace troupe::test;

TEST_CASE("a run computes what it fetches, duplicates once") {
  Graph g;
  Output a = constant(g, 2.0f), b = constant(g, 3.0f);
  Output product = a * b;
  Session s(g, one_thread());
  auto fetched = s.run({product, a, product});
  REQUIRE(fetched.size() == 3);
  CHECK(fetched[0].item<float>() == 6);
  CHECK(fetched[1].item<float>() == 2);
  CHECK(fetched[2].item<float>() == 6);
}

TEST_CASE("feeds replace outputs and are checked") {
  Graph g;
  Output x = placeholder<float>(g, {-1}, "x");
  Output y = x * x;
  Session s(g, one_thread());
  auto step = s.compile({y}, {}, {x});
  CHECK(step.run({Tensor::of<float>({2}, {2, 3})})[0].data<float>()[1] == 9);
  CHECK(step.try_run({Tensor::of<double>({1}, {1})}).status().code() == Code::invalid_argument);
  CHECK(step.try_run({}).status().code() == Code::invalid_argument);
  Status unfed = s.try_run({y}).status();
  CHECK(unfed.code() == Code::invalid_argument);
  CHECK(unfed.text().find('x') != std::string::npos);
}

TEST_CASE("a feed that the graph's shape rules out is refused alike in one process and in two") {
  for (const Place& place : kPlaces) {
    CAPTURE(place.name);
    Graph g;
    Output x = placeholder<float>(g, {-1, 2}, "x");
    Output y = node(g, place.second, "Neg", {x}).output();
    PlacedSession s(g, place);
    auto step = s->compile({y}, {}, {x});
    CHECK(step.run({Tensor::of<float>({1, 2}, {2, 3})})[0].data<float>()[1] == -3);
    CHECK(step.run({Tensor::of<float>({0, 2}, {})})[0].elements() == 0);
    for (const Shape& shape : {Shape{1, 3}, Shape{2}, Shape{}}) {
      Tensor wrong = Tensor::zeros(DType::f32, shape).value();
      CHECK(step.try_run({wrong}).status().text() ==
            "invalid_argument: feed 'x' takes f32[?,2], not f32" + shape.text());
    }
  }
}

TEST_CASE("variables keep their state across runs") {
  Graph g;
  Variable v = variable(g, "v", Tensor::scalar(1.0f));
  Op add = assign_add(v, constant(g, 2.0f));
  Session s(g, one_thread());
  Status early = s.try_run({v.value()}).status();
  CHECK(early.code() == Code::failed_precondition);
  CHECK(early.message().find("uninitialized value v") != std::string::npos);
  s.init();
  CHECK(s.committed() == 1);
  auto step = s.compile({v.value()}, {add});
  for (int i = 0; i < 5; ++i) CHECK(step.run()[0].item<float>() == 1.0f + 2.0f * float(i));
  CHECK(s.run({v.value()})[0].item<float>() == 11);
  CHECK(s.committed() == 6);
}

TEST_CASE("a read ordered after a write sees it") {
  Graph g;
  Variable v = variable(g, "v", Tensor::scalar(1.0f));
  Op add = assign_add(v, constant(g, 2.0f));
  Output after = read(v, {add});
  Session s(g, one_thread());
  s.init();
  auto fetched = s.run({v.value(), after});
  CHECK(fetched[0].item<float>() == 1);
  CHECK(fetched[1].item<float>() == 3);
}

TEST_CASE("a write that names more replicas than there are is one write, which its run reads") {
  Graph g;
  Variable v = variable(g, "v", Tensor::scalar(1.0f));
  const Op add = g.add(NodeSpec{.op = "AssignAdd",
                                .inputs = {v.handle(), constant(g, 2.0f)},
                                .attrs = {{"replicas", std::int64_t{2}}}});
  const Output after = read(v, {add});
  Session s(g, one_thread());
  s.init();
  const auto step = s.compile({after});
  const auto seen = step.try_run({}, {.timeout = std::chrono::seconds(20)});
  REQUIRE_MESSAGE(seen.ok(), seen.status().text());
  CHECK((*seen)[0].item<float>() == 3);
  CHECK(s.run({v.value()})[0].item<float>() == 3);
}

TEST_CASE("a list of variables follows another behind what changes it, or ahead of it") {
  Graph g;
  const Variable a = variable(g, "a", {1.f, 2.f}), b = variable(g, "b", 8.f);
  const Variable c = variable(g, "c", zeros(g, {2})), d = variable(g, "d", 0.f);
  const Op raise = group(g, {assign_add(a, 2), assign_add(b, 8)});
  const Op before = assign({c, d}, {a, b}), behind = assign({c, d}, {a, b}, {raise});
  const Op half = move_average({c, d}, 0.5, {a, b}, {raise});
  const Op swap = assign({a, c}, {c, a});
  Session s(g, one_thread());
  s.init();
  const auto after = [&](const std::vector<Op>& targets) {
    s.run({}, targets);
    return s.run({sum(c), d});
  };
  CHECK(after({before, raise})[0].item<float>() == 3);  // a is {3,4}, b is 16
  CHECK(after({behind})[1].item<float>() == 24);        // a is {5,6}
  CHECK(s.run({sum(c)})[0].item<float>() == 11);
  const auto moved = after({half});  // a is {7,8}, b is 32
  CHECK(moved[0].item<float>() == 13);
  CHECK(moved[1].item<float>() == 28);
  s.run({}, {swap});
  CHECK(s.run({sum(a)})[0].item<float>() == 13);
  CHECK(s.run({sum(c)})[0].item<float>() == 15);
}

TEST_CASE("gradient descent finds the minimum of a parabola") {
  Graph g;
  Variable w = variable(g, "w", Tensor::scalar(5.0f));
  Output loss = (w.value() - 2.0f) * (w.value() - 2.0f);
  Op train = optim::Sgd{.lr = 0.1}.minimize(loss);
  Session s(g, one_thread());
  s.init();
  auto step = s.compile({loss}, {train});
  float last = 100;
  for (int i = 0; i < 50; ++i) {
    auto [l] = step.run<float>();
    CHECK(l <= last);
    last = l;
  }
  CHECK(s.run({w.value()})[0].item<float>() == doctest::Approx(2).epsilon(0.01));
}

TEST_CASE("a run-time error names node, op, device and line") {
  Graph g;
  Output table = constant<float>(g, {2}, {1, 2});
  Output index = placeholder<std::int64_t>(g, {1}, "index");
  Output row = gather(table, index);
  Session s(g, one_thread());
  Status status = s.try_run({row}, {}, {{index, Tensor::of<std::int64_t>({1}, {7})}}).status();
  CHECK(status.code() == Code::invalid_argument);
  CHECK(status.text().find("Gather") != std::string::npos);
  CHECK(status.text().find("cpu:0") != std::string::npos);
  CHECK(status.text().find("session_test.cpp") != std::string::npos);
  // The session goes on.
  CHECK(s.try_run({row}, {}, {{index, Tensor::of<std::int64_t>({1}, {1})}}).ok());
}

TEST_CASE("Extend: nodes added later run, old state stays") {
  Graph g;
  Variable v = variable(g, "v", Tensor::scalar(4.0f));
  Session s(g, one_thread());
  s.init();
  Output twice = v.value() * 2.0f;
  CHECK(s.run({twice})[0].item<float>() == 8);
  Op add = assign_add(v, constant(g, 1.0f));
  s.run({}, {add});
  CHECK(s.run({twice})[0].item<float>() == 10);
}

TEST_CASE("a deadline ends a blocked run, and the session goes on") {
  Graph g;
  Gate gate(g, kTask0);
  Session s(g, one_thread());
  RunOptions options;
  options.timeout = std::chrono::milliseconds(20);
  CHECK(s.try_run({gate.taken}, {}, {}, options).status().code() == Code::deadline_exceeded);
  s.run({}, {gate.put}, {{gate.fed, Tensor::scalar(3.0f)}});
  CHECK(s.run({gate.taken})[0].item<float>() == 3);
}

TEST_CASE("a dequeue waits for the next enqueue of another thread") {
  Graph g;
  Output queue = fifo_queue(g, {DType::f32});  // of no shape
  Output out = dequeue(queue, {DType::f32})[0];
  Op in = enqueue(queue, {constant(g, 5.0f)});
  Session s(g, one_thread());
  auto take = s.compile({out});
  auto put = s.compile({}, {in});
  PendingRun waiting = take.start();
  put.run();
  CHECK(waiting.get()[0].item<float>() == 5);
}

TEST_CASE("Close cancels a blocked run and later calls fail") {
  Graph g;
  Gate gate(g, kTask0);
  Session s(g, one_thread());
  PendingRun waiting = s.compile({gate.taken}).start();
  CHECK(s.try_close().ok());
  CHECK(waiting.try_get().status().code() == Code::cancelled);
  CHECK(s.try_run({gate.taken}).status().code() == Code::failed_precondition);
  CHECK(s.try_close().ok());
}

TEST_CASE("concurrent steps of one session lose no update") {
  Graph g;
  Variable v = variable(g, "v", Tensor::scalar(0.0f));
  Op add = assign_add(v, constant(g, 1.0f));
  Session s(g, one_thread());
  s.init();
  auto step = s.compile({}, {add});
  std::vector<std::thread> clients;
  for (int t = 0; t < 4; ++t)
    clients.emplace_back([&] {
      for (int i = 0; i < 50; ++i) step.run(std::vector<Tensor>{});
    });
  for (auto& c : clients) c.join();
  CHECK(s.run({v.value()})[0].item<float>() == 200);
}

TEST_CASE("requests are refused with a reason") {
  Graph g;
  Output a = constant(g, 1.0f);
  Session s(g, one_thread());
  CHECK(s.try_run({}).status().code() == Code::invalid_argument);
  Graph other;
  Output b = constant(other, 1.0f);
  CHECK(s.try_run({b}).status().code() == Code::invalid_argument);
  CHECK(s.try_run({Output{}}).status().code() == Code::invalid_argument);
  CHECK(s.run({a})[0].item<float>() == 1);
}

TEST_CASE("scalars that are fetched as something else are an error, not an end") {
  Graph g;
  Output loss = constant(g, 1.5f), count = constant(g, std::int64_t{3});
  Output pair = constant(g, Tensor::of<float>({2}, {1, 2}));
  Session s(g, one_thread());
  auto text = [](auto run) -> std::string {
    try {
      run();
    } catch (const Error& e) {
      CHECK(e.status().code() == Code::invalid_argument);
      return e.status().text();
    }
    return "";
  };
  auto step = s.compile({loss, count, pair});
  CHECK(text([&] { step.run<float>(); }).find("fetches 3 values, not 1") != std::string::npos);
  CHECK(text([&] { step.run<float, float, float>(); }).find("fetch 1 is i64") != std::string::npos);
  CHECK(text([&] { step.run<float, std::int64_t, float>(); }).find("fetch 2 is f32[2], not one") !=
        std::string::npos);
  auto [l, c] = s.compile({loss, count}).run<float, std::int64_t>();
  CHECK(l == 1.5f);
  CHECK(c == 3);
  auto [first, whole, all] = step.run<float, Tensor, Tensor>();
  CHECK(first == 1.5f);
  CHECK(whole.item<std::int64_t>() == 3);
  CHECK(Tensor::same(all, Tensor::of<float>({2}, {1, 2})));
}
