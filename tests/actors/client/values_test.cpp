// Values of any kind and size cross processes.
#include <doctest/doctest.h>

#include <algorithm>

#include "tests/actors/sim/world.hpp"
#include "tests/actors/support/sessions.hpp"

using namespace troupe;
using namespace troupe::test;
using namespace std::string_literals;

namespace {

Output on(Graph& g, const char* task, std::string op, std::vector<Output> inputs,
          AttrMap attrs = {}) {
  return node(g, task, std::move(op), std::move(inputs), std::move(attrs)).output();
}

// All that a tensor of strings may be made of.
Tensor odd_strings() {
  return Tensor::of<std::string>({2, 3}, {"plain", "", "\0"s, "a\0b"s, std::string(300, 'x'), ""});
}

void many_nodes(int count) {
  Graph g;
  std::vector<Output> nodes;
  for (int i = 0; i < count; ++i) nodes.push_back(constant(g, float(i)));
  Output sum = on(g, kTask1, "Add", {nodes.front(), nodes.back()});
  TcpWorkers workers(2);
  Session s(g, workers.cluster());
  CHECK(s.run({sum})[0].item<float>() == float(count - 1));
}

}  // namespace

TEST_CASE("strings cross processes in every place a tensor does") {
  Graph g;
  Output x = placeholder<std::string>(g, PartialShape::unknown(), "x");
  Output here = on(g, kTask0, "Identity", {x});
  Output there = on(g, kTask1, "Identity", {here});
  Variable v = variable_on(g, kTask1, "v", Tensor::of<std::string>({2}, {"first", ""}));
  AttrMap types{{"types", std::vector<DType>{DType::string}}};
  Output queue = on(g, kTask0, "FIFOQueue", {}, types);
  NodeSpec enqueue;
  enqueue.op = "Enqueue";
  enqueue.inputs = {queue, there};
  Op put = g.add(std::move(enqueue));
  Output taken = on(g, kTask1, "Identity", {g.add("Dequeue", {queue}, types)});
  Output read = on(g, kTask0, "Identity", {v.value()});
  TcpWorkers workers(2);
  Session s(g, workers.cluster());
  s.init();
  CHECK(Tensor::same(s.run({read})[0], Tensor::of<std::string>({2}, {"first", ""})));
  auto step = s.compile({there, here}, {}, {x});
  std::vector<std::string> many(50'000, "twelve bytes");
  for (const Tensor& t :
       {odd_strings(), Tensor::scalar(""), Tensor::make(DType::string, {0, 3}).value(),
        Tensor::scalar(std::string(1 << 20, 'l')),
        Tensor::of<std::string>({50'000}, std::span<const std::string>(many))}) {
    auto fetched = step.run({t});
    CHECK(Tensor::same(fetched[0], t));
    CHECK(Tensor::same(fetched[1], t));
    s.run({}, {put}, {{x, t}});
    CHECK(Tensor::same(s.run({taken})[0], t));
  }
}

TEST_CASE("strings cross processes under every schedule") {
  Tensor strings = odd_strings();
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    CAPTURE(seed);
    Graph g;
    Variable v = variable_on(g, kTask0, "v", strings);
    Output there = on(g, kTask1, "Identity", {v.value()});
    World world(seed);
    Client client(world.master(), 1, g);
    client.init().compile("read", {there}, {}).run("read", 3).close();
    Status status = world.run({&client});
    CHECK_MESSAGE(status.ok(), status.text());
    CHECK_MESSAGE(client.status().ok(), client.status().text());
    REQUIRE(client.fetched().size() == 4);
    for (int run = 1; run < 4; ++run) CHECK(Tensor::same(client.fetched()[run][0], strings));
    Status end = world.shut_down();
    CHECK_MESSAGE(end.ok(), end.text());
  }
}

TEST_CASE("a graph with a constant of 40 MiB runs on other processes") {
  constexpr std::int64_t n = 10 << 20;
  Tensor large = Tensor::make(DType::f32, {n}).value();
  for (std::int64_t i = 0; i < n; ++i) large.mutable_data<float>()[i] = float(i % 3);
  Graph g;
  Output x = placeholder<float>(g, PartialShape::scalar(), "x");
  Output sum;
  {
    auto device = g.with_device(kTask1);
    sum = troupe::sum(constant(g, large) * x);
  }
  TcpWorkers workers(2);
  Session s(g, workers.cluster());
  auto step = s.compile({sum}, {}, {x});
  for (float factor : {1.0f, 2.0f})
    CHECK(step.run({Tensor::scalar(factor)})[0].item<float>() == factor * float(n - 1));
  // The graph grows: it is sent again, and what was there still runs.
  Output more = sum + 1.0f;
  CHECK(s.run({more}, {}, {{x, Tensor::scalar(1.0f)}})[0].item<float>() == float(n));
}

TEST_CASE("a graph of several parts is whole under every schedule") {
  constexpr std::int64_t n = 600'000;
  for (std::uint64_t seed = 0; seed < 5; ++seed) {
    CAPTURE(seed);
    Graph g;
    Variable v;
    Output sum;
    {
      auto device = g.with_device(kTask1);
      v = variable(g, "v", Tensor::scalar(2.0f));
      Tensor large = Tensor::make(DType::f32, {n}).value();
      std::fill_n(large.mutable_data<float>(), n, 1.0f);
      sum = troupe::sum(constant(g, large) * v.value());
    }
    World world(seed);
    Client client(world.master(), 1, g);
    client.init().compile("sum", {sum}, {}).run("sum").close();
    Status status = world.run({&client});
    CHECK_MESSAGE(status.ok(), status.text());
    REQUIRE_MESSAGE(client.status().ok(), client.status().text());
    CHECK(client.fetched()[1][0].item<float>() == 2 * float(n));
    Status end = world.shut_down();
    CHECK_MESSAGE(end.ok(), end.text());
  }
}

TEST_CASE("a graph with more constants than a message may hold is refused with a reason") {
  Graph g;
  // Never written, so it takes no memory until somebody reads it.
  Tensor huge = Tensor::make(DType::i8, {(std::int64_t{1} << 30) + 1}).value();
  Output begin = placeholder<std::int64_t>(g, {1});
  Output end = constant<std::int64_t>(g, {1}, {1});
  Output slice = on(g, kTask1, "Slice", {constant(g, huge), begin, end});
  TcpWorkers workers(2);
  Session s(g, workers.cluster());
  for (int i = 0; i < 2; ++i) {
    Status status = s.try_compile({slice}, {}, {begin}).status();
    CHECK(status.code() == Code::resource_exhausted);
    CHECK(status.text().find("while the graph was sent") != std::string::npos);
  }
  CHECK(s.try_close().ok());
}

TEST_CASE("a graph of many nodes runs on other processes") { many_nodes(10'000); }
TEST_CASE("a graph of 100000 nodes runs on other processes [slow]") { many_nodes(100'000); }

// Such as a mapped file of weights: a variable may have it as its value, until it is updated.
TEST_CASE("memory that the program owns is read and never written") {
  for (const std::int64_t n : {1, 64, 100'000}) {
    CAPTURE(n);
    Graph g;
    const Variable v = variable(g, "v", Tensor::zeros(DType::f32, Shape{n}).value());
    const Variable w = variable(g, "w", Tensor::zeros(DType::f32, Shape{n}).value());
    const Output x = placeholder<float>(g, {n});
    const Op set = node(g, "", "Assign", {v.handle(), x});
    const Op add = group(g, {assign_add(v, ones(g, {n})), assign_add(w, ones(g, {n}))});
    Session s(g, one_thread());
    s.init();
    const std::vector<float> ours(std::size_t(n), 3);
    const auto fed = [&] {
      return Tensor(DType::f32, Shape{n},
                    Buffer::wrap(const_cast<float*>(ours.data()), std::size_t(n) * sizeof(float),
                                 MemorySpace::host, nullptr, nullptr));
    };
    const auto adds = [&] {
      for (int i = 0; i < 3; ++i) s.run({}, {add});
      CHECK(s.run({v.value()})[0].data<float>()[n - 1] == 6);
      CHECK(std::count(ours.begin(), ours.end(), 3.f) == n);
    };
    s.run({}, {set}, {{x, fed()}});
    adds();
    s.assign({{"v", fed()}});
    adds();
    {
      const Tensor both = fed();
      s.assign({{"v", both}, {"w", both}});
    }
    adds();
  }
}

TEST_CASE("feeds and fetches that are many cross processes") {
  constexpr std::int64_t n = 15 * 1024;  // each below what travels on its own
  Graph g;
  std::vector<Output> feeds, fetches;
  std::vector<Tensor> values;
  for (int i = 0; i < 300; ++i) {
    feeds.push_back(placeholder<float>(g, {n}));
    fetches.push_back(on(g, i % 2 ? kTask0 : kTask1, "Neg", {feeds.back()}));
    Tensor t = Tensor::make(DType::f32, {n}).value();
    std::fill_n(t.mutable_data<float>(), n, float(i));
    values.push_back(t);
  }
  TcpWorkers workers(2);
  Session s(g, workers.cluster());
  auto fetched = s.compile(fetches, {}, feeds).run(values);
  for (int i = 0; i < 300; ++i) CHECK(fetched[std::size_t(i)].data<float>()[n - 1] == -float(i));
}
