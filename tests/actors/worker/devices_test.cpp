// Steps over several devices of one process: the fake device's memory faults when the host touches
// it, and its work is late.
#include <doctest/doctest.h>

#include <algorithm>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include "actors/client/session.hpp"
#include "apps/troupe.hpp"
#include "tests/same_bits.hpp"

using namespace troupe;
using troupe::test::same_bits;

namespace {

Cluster with_fake(std::uint64_t seed) {
  Cluster cluster;
  cluster.threads = 1;
  cluster.devices = {"CPU", "FAKE"};
  cluster.fake_seed = seed;
  cluster.soft_placement = false;  // or a missing kernel would go unnoticed
  return cluster;
}

Output ints(Graph& g, std::vector<std::int64_t> values) {
  Tensor t = value_or_throw(Tensor::make(DType::i64, Shape{std::int64_t(values.size())}));
  std::copy(values.begin(), values.end(), t.mutable_data<std::int64_t>());
  return constant(g, t);
}

const char* other(bool split) { return split ? "/fake:0" : "/cpu:0"; }

// Goes to and fro between the devices; fetches from both.
std::vector<Tensor> compute_small(bool split, std::uint64_t seed) {
  Graph g(3);
  Output x, a, b, c, d, rows, cut;
  {
    auto here = g.with_device("/cpu:0");
    x = placeholder<float>(g, {-1, 8}, "x");
    a = exp(x * 0.5f);
  }
  {
    auto there = g.with_device(other(split));
    b = mat_mul(a, transpose(a));
    rows = gather(b, ints(g, {1, 0}));
    cut = reshape(slice(b, ints(g, {0, 1}), ints(g, {2, 2})), {-1});
  }
  {
    auto here = g.with_device("/cpu:0");
    c = sum(b) + sum(rows);
  }
  {
    auto there = g.with_device(other(split));
    auto later = g.with_control({Op(c)});
    d = concat({b * c, relu(b - c)}, {.axis = 0}) + random_uniform(g, {6, 3});
  }
  Session s(g, with_fake(seed));
  auto step = s.compile({a, b, rows, cut, c, d}, {}, {x});
  std::vector<Tensor> all;
  for (int run = 0; run < 3; ++run) {
    Tensor fed = value_or_throw(Tensor::make(DType::f32, {3, 8}));
    for (int i = 0; i < 24; ++i) fed.mutable_data<float>()[i] = float((i * 7 + run) % 11) / 8 - 1;
    for (Tensor& t : step.run({fed})) all.push_back(std::move(t));
  }
  return all;
}

// A net of the ops of mnist-conv. Variables live on the CPU.
struct Net : nn::Module {
  explicit Net(Graph& g) : Module(g.scope("net")) {}
  nn::Conv2d c1{*this, "c1", 1, 3, 3}, c2{*this, "c2", 3, 4, 3};
  nn::MaxPool pool{2};
  nn::Linear hidden{*this, "hidden", 2 * 2 * 4, 6}, out{*this, "out", 6, 4};
};

// Loss of each of three steps, then the parameters and what the rule keeps beside them.
std::vector<Tensor> train(bool split, std::uint64_t seed) {
  Graph g(5);
  auto home = g.with_device("/cpu:0");
  Net net(g);
  auto [images, labels] = data::digits(32, data::Split::train).batch(4).repeat().outputs(g);
  // 8 x 8 pixels from the middle, four classes.
  Output x = slice(images, ints(g, {0, 10, 10, 0}), ints(g, {4, 8, 8, 1}));
  Output y = cast<std::int64_t>(cast<float>(labels) * 0.4f);
  {
    auto there = g.with_device(other(split));
    x = net.pool(relu(net.c1(x)));
  }
  x = relu(net.c2(x));
  Output loss;
  {
    auto there = g.with_device(other(split));
    x = net.pool(x);
    x = relu(net.hidden(x));
    loss = mean(softmax_cross_entropy(net.out(x), y));
  }
  Op update = optim::Momentum{.lr = 0.1, .momentum = 0.9}.minimize(loss);
  Session s(g, with_fake(seed));
  s.init();
  auto step = s.compile({loss}, {update});
  std::vector<Tensor> all;
  for (int i = 0; i < 3; ++i) all.push_back(step.run(std::vector<Tensor>{})[0]);
  for (const DeviceMemory& device : s.memory())
    if (device.device.find("fake") != std::string::npos) CHECK((device.peak > 0) == split);
  for (auto& [name, value] : value_or_throw(s.try_variables())) all.push_back(value);
  return all;
}

void compare_training(std::uint64_t first, std::uint64_t count) {
  const std::vector<Tensor> expected = train(false, 0);
  REQUIRE(expected.size() == 3 + 16);
  CHECK(!Tensor::same(expected[0], expected[2]));  // it learns
  for (std::uint64_t seed = first; seed < first + count; ++seed) {
    INFO("fake seed ", seed);
    REQUIRE(same_bits(train(true, seed), expected));
  }
}

}  // namespace

TEST_CASE("a graph cut between the devices of a process gives the bits of the CPU") {
  const std::vector<Tensor> expected = compute_small(false, 0);
  REQUIRE(expected.size() == 18);
  CHECK(!Tensor::same(expected[5], expected[11]));  // runs draw and are fed anew
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    INFO("fake seed ", seed);
    REQUIRE(same_bits(compute_small(true, seed), expected));
  }
}

TEST_CASE("what is placed on the fake device is computed there") {
  Graph g;
  Output y;
  {
    auto there = g.with_device("/fake:0");
    Output x = placeholder<float>(g, {256}, "x");
    y = exp(x) + x;
  }
  Session s(g, with_fake(1));
  s.run({y}, {}, {{Op(g.find("x")).output(), value_or_throw(Tensor::zeros(DType::f32, {256}))}});
  bool found = false;
  for (const DeviceMemory& device : s.memory())
    if (device.device.find("FAKE") != std::string::npos ||
        device.device.find("fake") != std::string::npos) {
      found = true;
      CHECK(device.peak >= 256 * sizeof(float));
    }
  CHECK(found);
}

TEST_CASE("a control edge between devices orders a read after a write") {
  for (std::uint64_t seed = 1; seed <= 5; ++seed) {
    INFO("fake seed ", seed);
    Graph g;
    Variable v = variable(g, "v", Tensor::scalar(1.0f));
    Output twice;
    Op marker;
    {
      auto there = g.with_device("/fake:0");
      twice = exp(v.value());
    }
    Op add = assign_add(v, twice);
    {
      auto there = g.with_device("/fake:0");
      auto later = g.with_control({add});
      marker = identity(constant(g, 1.0f));
    }
    Output after = read(v, {marker});
    Session s(g, with_fake(seed));
    s.init();
    auto fetched = s.run({v.value(), twice, after});
    CHECK(fetched[2].item<float>() == fetched[0].item<float>() + fetched[1].item<float>());
  }
}

TEST_CASE("variables live in the memory of another device") {
  Graph g;
  Variable v;
  Op add;
  {
    auto there = g.with_device("/fake:0");
    v = variable(g, "v", Tensor::of<float>({3}, {1, 2, 3}));
  }
  add = assign_add(v, constant<float>(g, {3}, {1, 1, 2}));
  Session s(g, with_fake(2));
  s.init();
  auto step = s.compile({v.value()}, {add});
  for (int i = 0; i < 4; ++i) {
    Tensor seen = step.run(std::vector<Tensor>{})[0];
    CHECK(seen.data<float>()[0] == 1 + float(i));
    CHECK(seen.data<float>()[2] == 3 + 2 * float(i));
  }
  auto variables = value_or_throw(s.try_variables());
  REQUIRE(variables.size() == 1);
  CHECK(variables[0].second.space() == MemorySpace::host);
  CHECK(variables[0].second.data<float>()[1] == 6);
}

TEST_CASE("an optimizer changes variables in the memory of another device") {
  const auto train_there = [](bool split, std::uint64_t seed) {
    Graph g(7);
    auto there = g.with_device(other(split));
    Variable w = variable(g, "w", Tensor::of<float>({2, 2}, {1, -2, 3, 0.5f}));
    Output error = w.value() - 0.25f;
    Op update = optim::Adam{.lr = 0.1}.minimize(sum(error * error));
    Session s(g, with_fake(seed));
    s.init();
    auto step = s.compile({}, {update});
    for (int i = 0; i < 5; ++i) step.run(std::vector<Tensor>{});
    return s.run({w.value()});
  };
  const std::vector<Tensor> expected = train_there(false, 0);
  CHECK(expected[0].data<float>()[0] < 1);
  for (std::uint64_t seed = 1; seed <= 5; ++seed) {
    INFO("fake seed ", seed);
    CHECK(same_bits(train_there(true, seed), expected));
  }
}

TEST_CASE("an error on another device names node, op, device and line") {
  Graph g;
  Output good, row, by, other_device;
  {
    auto here = g.with_device("/cpu:0");
    by = placeholder<std::int64_t>(g, {1}, "by");
    other_device = constant(g, 2.0f) * constant(g, 3.0f);
  }
  {
    auto there = g.with_device("/fake:0");
    row = exp(cast<float>(constant<std::int64_t>(g, {1}, {8}) / by));
    good = exp(cast<float>(by));
  }
  Session s(g, with_fake(1));
  CHECK(s.try_run({row}, {}, {{by, Tensor::of<std::int64_t>({1}, {4})}}).ok());
  Status status = s.try_run({row}, {}, {{by, Tensor::of<std::int64_t>({1}, {0})}}).status();
  CHECK(status.code() == Code::invalid_argument);
  CHECK(status.text().find("Div") != std::string::npos);
  CHECK(status.text().find("fake:0") != std::string::npos);
  CHECK(status.text().find("devices_test.cpp") != std::string::npos);
  // The stream that failed runs nothing any more; what needs another device goes on.
  CHECK(!s.try_run({good}, {}, {{by, Tensor::of<std::int64_t>({1}, {4})}}).ok());
  CHECK(s.run({other_device})[0].item<float>() == 6);
}

TEST_CASE("a run that fails on the CPU leaves the other device's work in order") {
  Graph g;
  Output x = placeholder<float>(g, {16, 16}, "x");
  Output index = placeholder<std::int64_t>(g, {1}, "index");
  Output far = x, row;
  {
    auto there = g.with_device("/fake:0");
    for (int i = 0; i < 10; ++i) far = mat_mul(far, x);
  }
  {
    auto here = g.with_device("/cpu:0");
    row = gather(sum(x, {.axes = {1}}), index) + sum(far);
  }
  const Tensor zeros = value_or_throw(Tensor::zeros(DType::f32, {16, 16}));
  for (std::uint64_t seed = 1; seed <= 5; ++seed) {
    INFO("fake seed ", seed);
    Session s(g, with_fake(seed));
    auto step = s.compile({row}, {}, {x, index});
    for (int i = 0; i < 10; ++i) {
      Status status = step.try_run({zeros, Tensor::of<std::int64_t>({1}, {99})}).status();
      CHECK(status.code() == Code::invalid_argument);
      CHECK(status.text().find("cpu:0") != std::string::npos);
      CHECK(step.run({zeros, Tensor::of<std::int64_t>({1}, {9})})[0].data<float>()[0] == 0);
    }
  }
}

TEST_CASE("concurrent steps on two devices lose no update") {
  Graph g;
  Variable near, far;
  {
    auto here = g.with_device("/cpu:0");
    near = variable(g, "near", Tensor::scalar(0.0f));
  }
  {
    auto there = g.with_device("/fake:0");
    far = variable(g, "far", Tensor::scalar(0.0f));
  }
  Op both = group(g, {assign_add(near, far.value() * 0.0f + 1.0f),
                      assign_add(far, near.value() * 0.0f + 1.0f)});
  Session s(g, with_fake(3));
  s.init();
  auto step = s.compile({}, {both});
  std::vector<std::thread> clients;
  for (int t = 0; t < 3; ++t)
    clients.emplace_back([&] {
      for (int i = 0; i < 20; ++i) step.run(std::vector<Tensor>{});
    });
  for (auto& c : clients) c.join();
  auto fetched = s.run({near.value(), far.value()});
  CHECK(fetched[0].item<float>() == 60);
  CHECK(fetched[1].item<float>() == 60);
}

TEST_CASE("values are put back into the memory of another device") {
  Graph g;
  Variable v;
  {
    auto there = g.with_device("/fake:0");
    v = variable(g, "v", Tensor::of<float>({2}, {1, 2}));
  }
  Session s(g, with_fake(1));
  REQUIRE(s.try_restore({{"v", Tensor::of<float>({2}, {5, 6})}}, 7).ok());
  CHECK(s.committed() == 7);
  CHECK(s.run({v.value()})[0].data<float>()[1] == 6);
}

TEST_CASE("the fake device gives the bits of the CPU") { compare_training(1, 10); }

TEST_CASE("the fake device gives the bits of the CPU, over many seeds [slow]") {
  compare_training(1000, 1000);
}

namespace {

// Variables on that device after two steps of three replicas, each with numbers of its own: sums
// and means of whole gradients and of rows.
std::vector<Tensor> by_replicas(const char* place, std::uint64_t seed) {
  Graph g(9);
  const PartialShape large{std::int64_t{1} << 13, 8};  // worth an update of rows
  std::vector<Output> read;
  std::vector<Op> writes;
  {
    auto there = g.with_device(place);
    const auto fresh = [&](const char* name) {
      return variable(g, name, value_or_throw(Tensor::zeros(DType::f32, large.shape())));
    };
    Variable sums = fresh("sums"), means = fresh("means"), rows = fresh("rows");
    Variable added = fresh("added");
    const Output at = ints(g, {5, 0, 5});
    writes = {assign_add(sums, random_uniform(g, large)),
              optim::Sgd{.lr = 1}.minimize(sum(means * random_uniform(g, large))),
              optim::Adagrad{.lr = 1}.minimize(sum(gather(rows, at) * random_uniform(g, {3, 8}))),
              scatter_add(added, at, random_uniform(g, {3, 8}))};
    for (const Variable& v : {sums, means, rows, added}) read.push_back(v.value());
  }
  Session s(g, with_fake(seed));
  s.init();
  auto step = s.compile({}, writes, {}, {.replicas = 3});
  for (int i = 0; i < 2; ++i) step.run();
  return s.run(read);
}

}  // namespace

TEST_CASE("replicas add up what they write to variables in device memory") {
  const auto on_cpu = by_replicas("/cpu:0", 1);
  for (std::uint64_t seed = 1; seed <= 2; ++seed)
    CHECK(same_bits(by_replicas("/fake:0", seed), on_cpu));
}
