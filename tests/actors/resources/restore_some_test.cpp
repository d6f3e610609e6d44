// Values for some variables from a file, initial ones for others, and none that is lost on the way.
#include <doctest/doctest.h>

#include <filesystem>

#include "ops/api.hpp"
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

TEST_CASE("what a graph does not use of a file may have a dtype that is none of ours") {
  const TemporaryDir dir;
  const auto write = [&](const std::string& entries, const std::string& data) {
    std::string file(8, '\0');
    file[0] = char(entries.size());
    dir.write("net", file + entries + data);
  };
  Graph g;
  Variable v = variable(g, "v", {0.f, 0.f});
  Session s(g, one_thread());
  write(R"({"v":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},)"
        R"("w":{"dtype":"F8_E5M2","shape":[3],"data_offsets":[8,11]}})",
        std::string("\0\0\x80?\0\0\0@abc", 11));
  s.restore(dir.path("net"));
  CHECK(s.run({sum(v)})[0].item<float>() == 3);
  write(R"({"v":{"dtype":"F8_E5M2","shape":[2],"data_offsets":[0,2]}})", "ab");
  CHECK(
      s.try_restore(dir.path("net")).text().find("variable 'v' is F8_E5M2[2] there, and f32[2]") !=
      std::string::npos);
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

TEST_CASE("a file restores the variables that it was written of, whatever their nodes are called") {
  const TemporaryDir dir;
  const std::string path = dir.path("named.safetensors");
  struct Named {
    Graph g;
    Variable a = variable(g, "a", 1.f), w = variable(g, "w", 2.f, {.container = "kept"}),
             x = variable(g, "x", 3.f, {.shared_name = "b"}),
             y = variable(g, "b", 4.f, {.container = "k"}),
             again = variable(g, "again", 3.f, {.shared_name = "b"});
  } first, then;
  const auto set = [&](const Variable& v, float x) { return assign(v, constant(then.g, x)); };
  Session s(first.g, one_thread());
  s.init();
  s.save(path);
  Session t(then.g, one_thread());
  t.restore(path);
  CHECK(one(t, then.w) == 2);
  t.run({}, {set(then.w, 7), set(then.x, 8), set(then.y, 9)});
  t.restore(path, {.init_others = true});
  CHECK(one(t, then.w) == 2);
  CHECK(one(t, then.x) == 3);
  CHECK(one(t, then.y) == 4);
  // One by one, too.
  t.run({}, {set(then.x, 8), set(then.y, 9)});
  t.save(path, {then.y});
  t.run({}, {set(then.y, 10)});
  t.restore(path, {.only = {then.y}});
  CHECK(one(t, then.x) == 8);
  CHECK(one(t, then.y) == 9);
  // Two handles of one are one.
  t.save(path, {then.x, then.again});
  t.run({}, {set(then.x, 5)});
  t.restore(path, {.only = {then.again, then.x}});
  CHECK(one(t, then.x) == 8);
  // And by what they are called in the list of all.
  const auto all = t.variables();
  CHECK(all.size() == 4);
  t.run({}, {set(then.x, 0), set(then.y, 0)});
  t.assign(all);
  CHECK(one(t, then.x) == 8);
  CHECK(one(t, then.y) == 9);
}

TEST_CASE("what is made behind a mutex or another node is saved and restored") {
  const TemporaryDir dir;
  struct Guarded {
    Graph g;
    Variable w = variable(g, "w", 1.f);
    Op train;
    Guarded() {
      auto locked = g.with_control({mutex_acquire(mutex(g))});
      train = optim::Adam{.lr = 0.1}.minimize(square(w - 3.f));
    }
  } first, then;
  Session s(first.g, one_thread());
  s.init();
  for (int i = 0; i < 2; ++i) s.run({}, {first.train});
  s.save_job(dir.path("job"));
  s.save(dir.path("all.safetensors"));
  s.run({}, {first.train});
  const float want = one(s, first.w);
  for (const bool file : {false, true}) {
    CAPTURE(file);
    Session t(then.g, one_thread());
    if (file)
      t.restore(dir.path("all.safetensors"));
    else
      t.restore_job(dir.path("job"));
    t.init();
    t.run({}, {then.train});
    CHECK(one(t, then.w) == want);
  }
}

TEST_CASE("a variable begins with what others have by then, initialised or restored") {
  const TemporaryDir dir;
  const std::string path = dir.path("first.safetensors");
  for (const Place& place : kPlaces) {
    CAPTURE(place.name);
    Graph g{7};
    const Variable free = variable(g, "free", 5.f);
    const Variable first = [&] {
      auto there = g.with_device(place.second);
      return variable(g, "first", random_normal(g, {4}));
    }();
    const Variable copy = variable(g, "copy", first);
    const Output here = constant(g, true);
    const Variable most =
        variable(g, "most",
                 cond(
                     here, [&] { return max(copy * 2); }, [&] { return max(copy); }));
    PlacedSession s(g, place);
    s->init();
    const auto begin = s->run({first, copy, most, max(first) * 2});
    CHECK(Tensor::same(begin[0], begin[1]));
    CHECK(Tensor::same(begin[2], begin[3]));
    s->save(path, {first});
    // What has a value keeps it; what has none is computed from that.
    s->run({}, {assign(first, 3)});
    s->init();
    CHECK(Tensor::same(s->run({copy})[0], begin[0]));
    s->init({.reset = true});
    const auto again = s->run({first, copy, most, max(first) * 2});
    CHECK(Tensor::same(again[0], again[1]));
    CHECK(Tensor::same(again[2], again[3]));
    PlacedSession fresh(g, place);
    fresh->restore(path, {.init_others = true});
    const auto restored = fresh->run({first, copy, most, free});
    for (int i = 0; i < 3; ++i)
      CHECK(Tensor::same(restored[std::size_t(i)], begin[std::size_t(i)]));
    CHECK(restored[3].item<float>() == 5);
  }
}

TEST_CASE("variables are restored from what a file calls otherwise") {
  const TemporaryDir dir;
  const std::string path = dir.path("base.safetensors");
  Graph base;
  RestoredNet net{base.scope("base")};
  Session s(base, one_thread());
  s.init();
  s.save(path, net.parameters());

  Graph g{3};
  RestoredNet part{g.scope("tuned").scope("base")};
  const Variable more = variable(g, "more", 2.f);
  const auto without = [](const std::string& name) {
    return name.starts_with("tuned/") ? name.substr(6) : name;
  };
  Session t(g, one_thread());
  CHECK(t.try_restore(path, {.only = part.parameters()}).code() == Code::not_found);
  CHECK(t.try_restore(path, {.name_in_file = without}).message() ==
        "it has no variable 'more', f32[] in the graph");
  CHECK(t.try_restore(path, {.only = part.parameters(),
                             .name_in_file = [](const std::string& name) { return "x" + name; }})
            .message() ==
        "it has no variable 'xtuned/base/layer/W', 'tuned/base/layer/W', f32[2,1] in the graph");
  t.restore(path, {.init_others = true, .name_in_file = without});
  const auto want = s.run({net.layer.weights(), net.layer.bias()});
  const auto got = t.run({part.layer.weights(), part.layer.bias(), more});
  for (std::size_t i = 0; i < 2; ++i) CHECK(Tensor::same(got[i], want[i]));
  CHECK(got[2].item<float>() == 2);
}
