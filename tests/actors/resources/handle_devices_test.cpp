// There is one copy of a resource, whatever devices a program names for what uses it.
#include <doctest/doctest.h>

#include <string>

#include "apps/troupe.hpp"
#include "tests/actors/support/nodes.hpp"

using namespace troupe;

namespace {

Cluster two_cpus() {
  Cluster cluster;
  cluster.threads = 1;
  cluster.devices = {"CPU", "CPU"};
  return cluster;
}

std::string error_of(const std::function<void()>& f) {
  try {
    f();
  } catch (const Error& e) {
    return e.status().text();
  }
  return "no error";
}

void check_names(const std::string& text, std::initializer_list<const char*> parts) {
  INFO(text);
  for (const char* part : parts) CHECK(text.find(part) != std::string::npos);
}

float value(Session& s, const Output& x) { return s.run({x})[0].item<float>(); }

// What four steps of an optimizer leave of a variable on `of_variable`, trained under
// `of_training`.
template <class Rule>
std::vector<float> trained(const Rule& rule, const char* of_variable, const char* of_training,
                           std::int64_t accumulated = 1) {
  Graph g(3);
  Variable w;
  {
    auto there = g.with_device(of_variable);
    w = variable(g, "w", Tensor::of<float>({2}, {1.0f, -2.0f}));
  }
  Op train;
  {
    auto here = g.with_device(of_training);
    const Output loss = sum(w.value() * w.value());
    auto gradients = optim::gradients(loss);
    if (accumulated > 1) gradients = optim::accumulate(std::move(gradients), accumulated);
    train = rule.apply(std::move(gradients));
  }
  Session s(g, two_cpus());
  s.init();
  for (int i = 0; i < 4; ++i) s.run({}, {train});
  const Tensor left = s.run({w.value()})[0];
  return {left.data<float>()[0], left.data<float>()[1]};
}

}  // namespace

TEST_CASE("a write under another device than its variable's is refused with both lines") {
  Graph g;
  Variable v;
  Op write;
  {
    auto there = g.with_device("/cpu:1");
    v = variable(g, "v", Tensor::of<float>({}, {1.0f}));
  }
  {
    auto here = g.with_device("/cpu:0");
    write = assign(v, constant(g, 5.0f));
  }
  Session s(g, two_cpus());
  s.init();
  check_names(error_of([&] { s.run({}, {write}); }),
              {"'v'", "cpu:0", "cpu:1", "handle_devices_test.cpp"});
  CHECK(value(s, v.value()) == 1);
}

TEST_CASE("a variable that names no device is where a node wants it, whichever request is first") {
  Graph g;
  const Variable v = variable(g, "v", Tensor::of<float>({}, {1.0f}));
  Op write;
  {
    auto there = g.with_device("/cpu:1");
    write = assign(v, constant(g, 5.0f));
  }
  {
    Session s(g, two_cpus());  // the write comes first: the variable is with it
    s.run({}, {write});
    CHECK(value(s, v.value()) == 5);
  }
  Session s(g, two_cpus());
  s.init();
  s.run({}, {write});
  CHECK(value(s, v.value()) == 5);
}

TEST_CASE("a variable stays where it is when a node that is added later wants it elsewhere") {
  Graph g;
  const Variable v = variable(g, "v", Tensor::of<float>({}, {1.0f}));
  Session s(g, two_cpus());
  s.init();
  auto there = g.with_device("/cpu:1");
  const Op write = assign(v, constant(g, 5.0f));
  check_names(error_of([&] { s.run({}, {write}); }),
              {"'v'", "cpu:1", "since an earlier request", "handle_devices_test.cpp"});
}

TEST_CASE("two handles of one variable in two requests are one variable") {
  Graph g;
  Variable a, b;
  {
    auto there = g.with_device("/cpu:1");
    a = variable(g, "a", Tensor::of<float>({}, {1.0f}), {.shared_name = "s"});
  }
  b = variable(g, "b", Tensor::of<float>({}, {2.0f}), {.shared_name = "s"});
  Session s(g, two_cpus());
  s.run({}, {assign(a, constant(g, 5.0f))});
  CHECK(value(s, b.value()) == 5);
}

TEST_CASE(
    "optimizers keep what they know beside the variable, under whatever device they are built") {
  const auto check = [](const auto& rule, std::int64_t accumulated) {
    const auto together = trained(rule, "/cpu:0", "/cpu:0", accumulated);
    CHECK(together[0] != 1);
    for (auto [of_variable, of_training] :
         {std::pair{"/cpu:1", "/cpu:0"}, {"/cpu:0", "/cpu:1"}, {"/cpu:1", ""}})
      CHECK(trained(rule, of_variable, of_training, accumulated) == together);
  };
  for (std::int64_t accumulated : {1, 2}) {
    check(optim::Sgd{.lr = 0.1}, accumulated);
    check(optim::Sgd{.lr = optim::exponential_decay({.rate = 0.1, .factor = 0.5, .every = 2})},
          accumulated);
    check(optim::Momentum{.lr = 0.1}, accumulated);
    check(optim::Adam{.lr = 0.1}, accumulated);
    check(optim::AdamW{.lr = 0.1}, accumulated);
  }
}

TEST_CASE("loops and branches under another device use the variable where it is") {
  Graph g;
  Variable v;
  {
    auto there = g.with_device("/cpu:1");
    v = variable(g, "v", Tensor::of<float>({}, {1.0f}));
  }
  Output total;
  {
    auto here = g.with_device("/cpu:0");
    total = std::get<1>(while_loop(
        std::tuple{constant(g, std::int64_t{0}), constant(g, 0.0f)},
        [](Output i, Output) { return i < 3; },
        [&](Output i, Output t) {
          return std::tuple{i + 1, t + v.value()};
        }));
  }
  Session s(g, two_cpus());
  s.init();
  CHECK(value(s, total) == 3);
}

TEST_CASE("moving averages move where their variable is") {
  Graph g;
  Variable v;
  {
    auto there = g.with_device("/cpu:1");
    v = variable(g, "v", Tensor::of<float>({}, {1.0f}), {.trainable = false});
  }
  Op move;
  {
    auto here = g.with_device("/cpu:0");
    move = move_average(v, 0.5, constant(g, 3.0f));
  }
  Session s(g, two_cpus());
  s.init();
  s.run({}, {move});
  CHECK(value(s, v.value()) == 2);
}

TEST_CASE("a queue and a dataset are used where they are, or refused") {
  Graph g;
  Output queue;
  {
    auto there = g.with_device("/cpu:1");
    queue = test::queue_on(g, "/cpu:1");
  }
  Op put, inside;
  {
    auto here = g.with_device("/cpu:0");
    put = enqueue(queue, {constant(g, 1.0f)});
  }
  {
    auto there = g.with_device("/cpu:1");
    inside = enqueue(queue, {constant(g, 1.0f)});
  }
  Session s(g, two_cpus());
  s.run({}, {inside});
  check_names(error_of([&] { s.run({}, {put}); }), {"cpu:0", "cpu:1", "handle_devices_test.cpp"});
  CHECK(value(s, test::take_from(queue)) == 1);
}
