// Save and Restore as steps of a session.
#include <doctest/doctest.h>

#include <atomic>
#include <thread>

#include "ops/data/data.hpp"
#include "serialization/safetensors.hpp"
#include "tests/actors/support/sessions.hpp"
#include "tests/serialization/temporary.hpp"

using namespace troupe;
using namespace troupe::test;
using troupe::testing::TemporaryDir;

namespace {

// Two variables that are saved and restored together. They are on `first`; files are read and
// written by `second`.
struct Pair {
  Place place;
  TemporaryDir dir;
  std::string prefix = dir.path("model");
  Graph g;
  Variable a, b;
  Output path;
  Op raise, save_both, load;
  std::vector<Output> restored;
  PlacedSession s;

  explicit Pair(const Place& p) : place(p), s(g, place) {
    {
      auto here = g.with_device(place.first);
      a = variable(g, "a", Tensor::of<float>({3}, {1, 2, 3}));
      b = variable(g, "b", Tensor::scalar<std::int64_t>(7));
      raise = group(g, {assign_add(a, constant<float>(g, {3}, {1, 1, 1})),
                        assign_add(b, constant(g, std::int64_t{1}))});
    }
    {
      auto there = g.with_device(place.second);
      path = constant(g, Tensor::scalar<std::string>(prefix));
      save_both = save(path, {a.value(), b.value()}, {"a", "b"});
      restored = restore(path, {"a", "b"}, {DType::f32, DType::i64},
                         {.shapes = {PartialShape{3}, PartialShape::scalar()}});
    }
    load = group(g, {assign(a, restored[0]), assign(b, restored[1])});
    s->init();
  }
  std::string file() const { return prefix + ".safetensors"; }
  // An error of an op that touches files says which, where it ran and who created it.
  void named(const Status& status, const std::string& op, const std::string& path) const {
    INFO(status.text());
    CHECK(!status.ok());
    for (const std::string& word :
         {path, "in node '" + op, "(" + op + ")", place.second + std::string("/cpu:0"),
          std::string("files_test.cpp:")})
      CHECK(status.text().find(word) != std::string::npos);
  }
  void check(float first, std::int64_t second) {
    auto now = s->run({a.value(), b.value()});
    CHECK(now[0].data<float>()[0] == first);
    CHECK(now[1].item<std::int64_t>() == second);
  }
  void put(std::map<std::string, Tensor> tensors) {
    Safetensors content;
    content.tensors = std::move(tensors);
    REQUIRE(write_safetensors(file(), content).ok());
  }
  // What a run of `load` fails with. Nothing was assigned.
  Status refused() {
    Status status = s->try_run({}, {load}).status();
    named(status, "Restore", file());
    check(1, 7);
    return status;
  }
};

}  // namespace

TEST_CASE("what a step saves, another restores") {
  for (const Place& place : kPlaces) {
    CAPTURE(place.name);
    Pair p(place);
    p.s->run({}, {p.save_both});
    CHECK(p.dir.names() == std::vector<std::string>{"model.safetensors"});
    Safetensors content = value_or_throw(read_safetensors(p.file()));
    CHECK(content.tensors.at("a").data<float>()[2] == 3);
    CHECK(content.tensors.at("b").item<std::int64_t>() == 7);
    for (int i = 0; i < 3; ++i) p.s->run({}, {p.raise});
    p.check(4, 10);
    p.s->run({}, {p.load});
    p.check(1, 7);
  }
}

TEST_CASE("a step saves the values of its snapshot") {
  for (const Place& place : kPlaces) {
    CAPTURE(place.name);
    Pair p(place);
    p.s->run({}, {p.raise, p.save_both});
    CHECK(value_or_throw(read_safetensors(p.file())).tensors.at("b").item<std::int64_t>() == 7);
    p.s->run({}, {p.save_both});  // over the older file
    CHECK(value_or_throw(read_safetensors(p.file())).tensors.at("b").item<std::int64_t>() == 8);
    p.check(2, 8);
  }
}

TEST_CASE("another session restores what one has saved") {
  for (const Place& place : kPlaces) {
    CAPTURE(place.name);
    Pair p(place);
    p.s->run({}, {p.raise});
    p.s->run({}, {p.save_both});
    p.s->close();
    PlacedSession next(p.g, place);
    next->run({}, {p.load});  // instead of init
    CHECK(next->run({p.b.value()})[0].item<std::int64_t>() == 8);
  }
}

TEST_CASE("restored values can be fetched without a variable") {
  for (const Place& place : kPlaces) {
    CAPTURE(place.name);
    Pair p(place);
    p.s->run({}, {p.save_both});
    auto fetched = p.s->run(p.restored);
    CHECK(fetched[0].data<float>()[1] == 2);
    CHECK(fetched[1].item<std::int64_t>() == 7);
  }
}

TEST_CASE("a file that is not there is named") {
  for (const Place& place : kPlaces) {
    CAPTURE(place.name);
    Pair p(place);
    CHECK(p.refused().code() == Code::not_found);
    p.s->run({}, {p.save_both});  // the session goes on
    p.s->run({}, {p.load});
  }
}

TEST_CASE("a damaged file is named") {
  for (const Place& place : kPlaces) {
    CAPTURE(place.name);
    Pair p(place);
    p.s->run({}, {p.save_both});
    const std::string whole = p.dir.read("model.safetensors");
    for (const std::string& damaged :
         {std::string(), whole.substr(0, 5), whole.substr(0, whole.size() - 1), whole + "x",
          "\xff" + whole.substr(1)}) {
      p.dir.write("model.safetensors", damaged);
      CHECK(p.refused().code() == Code::data_loss);
    }
    p.dir.write("model.safetensors", whole);
    p.s->run({}, {p.load});
  }
}

TEST_CASE("another dtype, shape or name in the file is named") {
  for (const Place& place : kPlaces) {
    CAPTURE(place.name);
    Pair p(place);
    const Tensor a = Tensor::of<float>({3}, {9, 9, 9}), b = Tensor::scalar<std::int64_t>(9);
    p.put({{"a", a}});
    Status status = p.refused();
    CHECK(status.code() == Code::not_found);
    CHECK(status.text().find("'b'") != std::string::npos);
    p.put({{"a", a}, {"b", Tensor::scalar<std::int32_t>(9)}});
    status = p.refused();
    CHECK(status.code() == Code::invalid_argument);
    CHECK(status.text().find("'b'") != std::string::npos);
    CHECK(status.text().find("i32[], not i64") != std::string::npos);
    p.put({{"a", Tensor::of<float>({2}, {9, 9})}, {"b", b}});
    status = p.refused();
    CHECK(status.code() == Code::invalid_argument);
    CHECK(status.text().find("'a'") != std::string::npos);
    CHECK(status.text().find("[2], not [3]") != std::string::npos);
    p.put({{"a", a}, {"b", b}});
    p.s->run({}, {p.load});
    p.check(9, 9);
  }
}

TEST_CASE("a place that cannot be written is named") {
  for (const Place& place : kPlaces) {
    CAPTURE(place.name);
    Pair p(place);
    p.dir.write("plain", "a file, not a directory");
    Output path = placeholder<std::string>(p.g, {});
    Op more = assign_add(p.b, constant(p.g, std::int64_t{1}));
    auto there = p.g.with_device(place.second);
    Op nowhere = save(path, {p.a.value()}, {"a"});
    auto step = p.s->compile({}, {nowhere, more}, {path});
    for (const char* name : {"none/model", "plain/model"}) {
      auto prefix = Tensor::scalar<std::string>(p.dir.path(name));
      Status status = step.try_run({prefix}).status();
      p.named(status, "Save", std::string(name) + ".safetensors");
      p.check(1, 7);  // nothing of the run is committed
    }
    CHECK(p.dir.names() == std::vector<std::string>{"plain"});
    step.run({Tensor::scalar<std::string>(p.prefix)});
    p.check(1, 8);
  }
}

TEST_CASE("two tensors of one name are not saved") {
  for (const Place& place : kPlaces) {
    CAPTURE(place.name);
    Pair p(place);
    auto there = p.g.with_device(place.second);
    Op twice = save(p.path, {p.a.value(), p.b.value()}, {"a", "a"});
    Status status = p.s->try_run({}, {twice}).status();
    CHECK(status.code() == Code::invalid_argument);
    p.named(status, "Save", "'a'");
    CHECK(p.dir.names().empty());
  }
}

// A feed of unknown shape is checked by whoever takes it.
TEST_CASE("a prefix that is no scalar is refused") {
  for (const Place& place : kPlaces) {
    CAPTURE(place.name);
    Pair p(place);
    Output path = placeholder<std::string>(p.g, PartialShape::unknown());
    auto there = p.g.with_device(place.second);
    Op nowhere = save(path, {p.a.value()}, {"a"});
    Output nothing = restore(path, {"a"}, {DType::f32})[0];
    for (std::int64_t n : {0, 2}) {
      Tensor list = Tensor::zeros(DType::string, {n}).value();
      Status status = p.s->try_run({}, {nowhere}, {{path, list}}).status();
      CHECK(status.code() == Code::invalid_argument);
      p.named(status, "Save", "prefix");
      status = p.s->try_run({nothing}, {}, {{path, list}}).status();
      CHECK(status.code() == Code::invalid_argument);
      p.named(status, "Restore", "prefix");
    }
    p.s->run({}, {nowhere}, {{path, Tensor::scalar<std::string>(p.prefix)}});
  }
}

TEST_CASE("assignments of restored values and the rest of the run are one transaction") {
  for (const Place& place : kPlaces) {
    CAPTURE(place.name);
    Pair p(place);
    p.put({{"a", Tensor::of<float>({3}, {9, 9, 9})}, {"b", Tensor::scalar<std::int64_t>(9)}});
    Output index = placeholder<std::int64_t>(p.g, {1}, "index");
    Op fails = gather(constant<float>(p.g, {2}, {1, 2}), index);
    auto step = p.s->compile({}, {p.load, fails}, {index});
    auto run = [&](std::int64_t i) {
      return step.try_run({Tensor::of<std::int64_t>({1}, {i})}).status();
    };
    CHECK(run(5).code() == Code::invalid_argument);
    p.check(1, 7);
    CHECK(run(1).ok());
    p.check(9, 9);
  }
}

TEST_CASE("readers see all restored values or none") {
  for (const Place& place : kPlaces) {
    CAPTURE(place.name);
    Pair p(place);
    p.put({{"a", Tensor::of<float>({3}, {9, 9, 9})}, {"b", Tensor::scalar<std::int64_t>(9)}});
    Op reset = group(p.g, {assign(p.a, constant<float>(p.g, {3}, {1, 2, 3})),
                           assign(p.b, constant(p.g, std::int64_t{7}))});
    auto read = p.s->compile({p.a.value(), p.b.value()});
    auto load = p.s->compile({}, {p.load}), back = p.s->compile({}, {reset});
    std::atomic<bool> over{false};
    std::thread writer([&] {
      for (int i = 0; i < 50; ++i) {
        load.run(std::vector<Tensor>{});
        back.run(std::vector<Tensor>{});
      }
      over = true;
    });
    int torn = 0;
    while (!over) {
      auto now = read.run(std::vector<Tensor>{});
      torn += (now[0].data<float>()[0] == 9) != (now[1].item<std::int64_t>() == 9);
    }
    writer.join();
    CHECK(torn == 0);
  }
}

// The partition that saves has done its part when another one fails.
TEST_CASE("a run that fails leaves the saved file as it was") {
  for (const Place& place : kPlaces) {
    CAPTURE(place.name);
    Pair p(place);
    p.s->run({}, {p.save_both});
    const std::string before = p.dir.read("model.safetensors");
    Output index = placeholder<std::int64_t>(p.g, {1}, "index");
    Op fails;
    {
      auto after = p.g.with_control({p.save_both});
      fails = gather(constant<float>(p.g, {2}, {1, 2}), index);
    }
    auto step = p.s->compile({}, {p.raise, fails}, {index});
    auto run = [&](std::int64_t i) {
      return step.try_run({Tensor::of<std::int64_t>({1}, {i})}).status();
    };
    p.s->run({}, {p.raise});
    CHECK(run(5).code() == Code::invalid_argument);
    CHECK(p.dir.read("model.safetensors") == before);
    p.check(2, 8);
    CHECK(run(1).ok());  // its snapshot: {2, 3, 4}, 8
    CHECK(value_or_throw(read_safetensors(p.file())).tensors.at("b").item<std::int64_t>() == 8);
    CHECK(p.dir.names() == std::vector<std::string>{"model.safetensors"});
  }
}

TEST_CASE("of what replicas save to one file the first one's stays, wherever they are") {
  for (const Place& place : kPlaces) {
    CAPTURE(place.name);
    const TemporaryDir dir;
    Graph g;
    const Output own = data::tensors({Tensor::of<float>({2}, {5, 6})}).repeat().outputs<1>(g)[0];
    const Output one = constant(g, Tensor::scalar<std::string>(dir.path("one")));
    const Op write = save(one, {own + 0.0f}, {"own"});
    PlacedSession s(g, place);
    const CompiledStep step = s->compile({}, {write}, {}, {.replicas = 2});
    for (int i = 0; i < 10; ++i) {
      step.run(std::vector<Tensor>{});
      const Safetensors content = value_or_throw(read_safetensors(dir.path("one.safetensors")));
      CHECK(content.tensors.at("own").item<float>() == 5);
    }
  }
}
