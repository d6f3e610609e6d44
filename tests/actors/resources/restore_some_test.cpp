// Values for some variables from a file, initial ones for others, and none that is lost on the way.
#include <doctest/doctest.h>

#include <filesystem>

#include "ops/api/queues.hpp"
#include "ops/nn/nn.hpp"
#include "ops/optim/optim.hpp"
#include "serialization/safetensors.hpp"
#include "tests/actors/support/sessions.hpp"
#include "tests/serialization/temporary.hpp"

using namespace troupe;
using namespace troupe::test;
using troupe::testing::TemporaryDir;

namespace {

struct RestoredNet : nn::Module {
  using Module::Module;
  nn::Linear layer{*this, "layer", 2, 1};
};

// A network that is trained, or only used.
struct Trained {
  Graph g{5};
  RestoredNet net{g.scope("net")};
  Output x = constant(g, {{1.f, 2.f}});
  Output y = net.layer(x);
  Op train;

  explicit Trained(bool trained) {
    if (trained) train = optim::Adam{.lr = 0.1}.minimize(mean(square(y)));
  }
};

float one(Session& s, const Output& x) { return s.run({sum(x)})[0].item<float>(); }

}  // namespace

TEST_CASE("a file with the optimizer's state is restored into a graph for inference") {
  const TemporaryDir dir;
  const std::string path = dir.path("net.safetensors");
  Trained trained(true);
  Session training(trained.g, one_thread());
  training.init();
  for (int i = 0; i < 3; ++i) training.run({}, {trained.train});
  training.save(path);
  CHECK(read_safetensors(path)->tensors.size() > 2);
  const float answer = one(training, trained.y);

  Trained used(false);
  Session inference(used.g, one_thread());
  inference.restore(path);
  CHECK(one(inference, used.y) == answer);
}

TEST_CASE("a graph without variables has nothing to save to a file, nor to restore from one") {
  const TemporaryDir dir;
  const std::string path = dir.path("queue.safetensors");
  Graph g;
  const Output queue = fifo_queue(g, {DType::f32}, {.shapes = {PartialShape::scalar()}});
  const Op put = enqueue(queue, {constant(g, 1.f)});
  Session s(g, one_thread());
  s.run({}, {put});
  CHECK(s.try_save(path).code() == Code::failed_precondition);
  CHECK(!std::filesystem::exists(path));
  REQUIRE(write_safetensors(path, {}).ok());
  CHECK(s.try_restore(path).code() == Code::failed_precondition);
}

TEST_CASE("parameters alone are saved, and what the optimizer needs beside them is initialised") {
  const TemporaryDir dir;
  const std::string path = dir.path("net.safetensors");
  Trained first(true);
  Session s(first.g, one_thread());
  s.init();
  s.run({}, {first.train});
  s.save(path, first.net.parameters());
  CHECK(read_safetensors(path)->tensors.size() == 2);
  const float answer = one(s, first.y);

  Trained again(true);
  Session t(again.g, one_thread());
  CHECK(t.try_restore(path).code() == Code::not_found);  // the optimizer's state is not there
  t.restore(path, {.init_others = true});
  CHECK(one(t, again.y) == answer);
  t.run({}, {again.train});  // which it could not without
  CHECK(one(t, again.y) != answer);
  // A second time the optimizer's state is what it has become.
  const auto state = t.variables();
  t.restore(path, {.init_others = true});
  CHECK(one(t, again.y) == answer);
  const auto after = t.variables();
  REQUIRE(after.size() == state.size());
  for (std::size_t i = 2; i < state.size(); ++i)
    CHECK(Tensor::same(after[i].second, state[i].second));
}

TEST_CASE("some variables are restored by name, others stay or are initialised") {
  const TemporaryDir dir;
  const std::string path = dir.path("all.safetensors");
  for (const Place& place : kPlaces) {
    CAPTURE(place.name);
    Graph g;
    auto there = g.with_device(place.second);
    const Variable a = variable(g, "a", {1.f, 2.f}), b = variable(g, "b", 3.f);
    const Op raise = group(g, {assign_add(a, ones(g, {2})), assign_add(b, ones(g, {}))});
    PlacedSession s(g, place);
    s->init();
    s->save(path);
    s->run({}, {raise});
    s->restore(path, {.only = {a}});
    CHECK(one(*s, a) == 3);
    CHECK(one(*s, b) == 4);
    PlacedSession fresh(g, place);
    fresh->restore(path, {.only = {a}});
    CHECK(fresh->try_run({b}).status().code() == Code::failed_precondition);
    fresh->restore(path, {.only = {a}, .init_others = true});
    CHECK(one(*fresh, b) == 3);
  }
}

TEST_CASE("what does not fit a file is refused by name, and changes nothing") {
  const TemporaryDir dir;
  const std::string path = dir.path("other.safetensors");
  Graph g, other;
  const Variable a = variable(g, "a", {1.f, 2.f}), b = variable(g, "b", 3.f);
  const Variable elsewhere = variable(other, "a", 0.f);
  Session s(g, one_thread());
  s.init();
  REQUIRE(
      write_safetensors(path, {{{"b", Tensor::scalar(9.f)}, {"c", Tensor::scalar(9.f)}}, {}}).ok());
  CHECK(s.try_restore(path).message() == "it has no variable 'a', f32[2] in the graph");
  CHECK(s.try_restore(path, {.only = {a}}).message() ==
        "it has no variable 'a', f32[2] in the graph");
  CHECK(s.try_restore(path, {.only = {a}, .init_others = true}).code() == Code::not_found);
  CHECK(s.try_restore(path, {.only = {elsewhere}}).message() ==
        "a variable belongs to another graph than the session's");
  CHECK(s.try_restore(path, {.only = {Variable()}}).code() == Code::invalid_argument);
  CHECK(s.try_save(path, {}).code() == Code::failed_precondition);
  CHECK(s.try_save(path, {elsewhere}).code() == Code::invalid_argument);
  REQUIRE(write_safetensors(path, {{{"b", Tensor::of<float>({2}, {1, 1})}}, {}}).ok());
  CHECK(s.try_restore(path, {.init_others = true}).message() ==
        "variable 'b' is f32[2] there, and f32[] in the graph");
  REQUIRE(write_safetensors(path, {{{"c", Tensor::scalar(9.f)}}, {}}).ok());
  CHECK(s.try_restore(path, {.init_others = true}).message() ==
        "it has none of the graph's variables");
  CHECK(one(s, a) == 3);
  CHECK(one(s, b) == 3);
}

TEST_CASE("init gives values to what has none, and anew only when asked") {
  for (const Place& place : kPlaces) {
    CAPTURE(place.name);
    Graph g;
    auto there = g.with_device(place.second);
    const Variable v = variable(g, "v", 1.f);
    const Op raise = assign_add(v, ones(g, {}));
    PlacedSession s(g, place);
    s->init();
    s->run({}, {raise});
    s->init();
    CHECK(one(*s, v) == 2);
    // What is new has none.
    const Variable w = variable(g, "w", 10.f);
    CHECK(s->try_run({w}).status().code() == Code::failed_precondition);
    s->init();
    CHECK(one(*s, v) == 2);
    CHECK(one(*s, w) == 10);
    s->init({.reset = true});
    CHECK(one(*s, v) == 1);
    // What was dropped has none either.
    s->run({}, {raise});
    s->reset();
    s->init();
    CHECK(one(*s, v) == 1);
  }
}

TEST_CASE("init after restore keeps what was restored") {
  const TemporaryDir dir;
  const std::string path = dir.path("v.safetensors");
  Graph g;
  const Variable v = variable(g, "v", 1.f);
  Session s(g, one_thread());
  REQUIRE(write_safetensors(path, {{{"v", Tensor::scalar(7.f)}}, {}}).ok());
  s.restore(path);
  s.init();
  CHECK(one(s, v) == 7);
  const std::size_t nodes = g.def().nodes.size();
  s.init();
  CHECK(g.def().nodes.size() == nodes);  // what looks at variables is not of the client's graph
}
