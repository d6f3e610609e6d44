// Save and Restore as steps of a session.
#include <doctest/doctest.h>

#include <atomic>
#include <thread>

#include "actors/session.hpp"
#include "ops/api/constant.hpp"
#include "ops/api/generated.hpp"
#include "ops/api/operators.hpp"
#include "ops/api/variable.hpp"
#include "ops/graph_api.hpp"
#include "serialization/safetensors.hpp"
#include "tests/serialization/temporary.hpp"

using namespace troupe;
using troupe::testing::TemporaryDir;

namespace {

Cluster one_thread() {
  Cluster cluster;
  cluster.threads = 1;
  return cluster;
}

// Two variables that are saved and restored together.
struct Pair {
  TemporaryDir dir;
  std::string prefix = dir.path("model");
  Graph g;
  Output path = constant(g, Tensor::scalar<std::string>(prefix));
  Variable a = variable(g, "a", Tensor::of<float>({3}, {1, 2, 3}));
  Variable b = variable(g, "b", Tensor::scalar<std::int64_t>(7));
  Op raise = group(g, {assign_add(a, constant<float>(g, {3}, {1, 1, 1})),
                       assign_add(b, constant(g, std::int64_t{1}))});
  Op save_both = save(path, {a.value(), b.value()}, {"a", "b"});
  std::vector<Output> restored = restore(path, {"a", "b"}, {DType::f32, DType::i64},
                                         {.shapes = {PartialShape{3}, PartialShape::scalar()}});
  Op load = group(g, {assign(a, restored[0]), assign(b, restored[1])});
  Session s{g, one_thread()};

  Pair() { s.init(); }
  std::string file() const { return prefix + ".safetensors"; }
  void check(float first, std::int64_t second) {
    auto now = s.run({a.value(), b.value()});
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
    Status status = s.try_run({}, {load}).status();
    INFO(status.text());
    CHECK(!status.ok());
    CHECK(status.text().find(file()) != std::string::npos);
    CHECK(status.text().find("Restore") != std::string::npos);
    CHECK(status.text().find("cpu:0") != std::string::npos);
    CHECK(status.text().find("files_test.cpp") != std::string::npos);
    check(1, 7);
    return status;
  }
};

}  // namespace

TEST_CASE("what a step saves, another restores") {
  Pair p;
  p.s.run({}, {p.save_both});
  CHECK(p.dir.names() == std::vector<std::string>{"model.safetensors"});
  Safetensors content = value_or_throw(read_safetensors(p.file()));
  CHECK(content.tensors.at("a").data<float>()[2] == 3);
  CHECK(content.tensors.at("b").item<std::int64_t>() == 7);
  for (int i = 0; i < 3; ++i) p.s.run({}, {p.raise});
  p.check(4, 10);
  p.s.run({}, {p.load});
  p.check(1, 7);
}

TEST_CASE("a step saves the values of its snapshot") {
  Pair p;
  p.s.run({}, {p.raise, p.save_both});
  CHECK(value_or_throw(read_safetensors(p.file())).tensors.at("b").item<std::int64_t>() == 7);
  p.s.run({}, {p.save_both});  // over the older file
  CHECK(value_or_throw(read_safetensors(p.file())).tensors.at("b").item<std::int64_t>() == 8);
  p.check(2, 8);
}

TEST_CASE("another session restores what one has saved") {
  Pair p;
  p.s.run({}, {p.raise});
  p.s.run({}, {p.save_both});
  p.s.close();
  Session next(p.g, one_thread());
  next.run({}, {p.load});  // instead of init
  CHECK(next.run({p.b.value()})[0].item<std::int64_t>() == 8);
}

TEST_CASE("restored values can be fetched without a variable") {
  Pair p;
  p.s.run({}, {p.save_both});
  auto fetched = p.s.run(p.restored);
  CHECK(fetched[0].data<float>()[1] == 2);
  CHECK(fetched[1].item<std::int64_t>() == 7);
}

TEST_CASE("a file that is not there is named") {
  Pair p;
  CHECK(p.refused().code() == Code::not_found);
  p.s.run({}, {p.save_both});  // the session goes on
  p.s.run({}, {p.load});
}

TEST_CASE("a damaged file is named") {
  Pair p;
  p.s.run({}, {p.save_both});
  const std::string whole = p.dir.read("model.safetensors");
  for (std::string damaged : {std::string(), whole.substr(0, 5), whole.substr(0, whole.size() - 1),
                              whole + "x", "\xff" + whole.substr(1)}) {
    p.dir.write("model.safetensors", damaged);
    CHECK(p.refused().code() == Code::data_loss);
  }
  p.dir.write("model.safetensors", whole);
  p.s.run({}, {p.load});
}

TEST_CASE("another dtype, shape or name in the file is named") {
  Pair p;
  const Tensor a = Tensor::of<float>({3}, {9, 9, 9}), b = Tensor::scalar<std::int64_t>(9);
  p.put({{"a", a}});
  Status status = p.refused();
  CHECK(status.code() == Code::not_found);
  CHECK(status.text().find("'b'") != std::string::npos);
  p.put({{"a", a}, {"b", Tensor::scalar<std::int32_t>(9)}});
  status = p.refused();
  CHECK(status.code() == Code::invalid_argument);
  CHECK(status.text().find("'b'") != std::string::npos);
  CHECK(status.text().find("i32, not i64") != std::string::npos);
  p.put({{"a", Tensor::of<float>({2}, {9, 9})}, {"b", b}});
  status = p.refused();
  CHECK(status.code() == Code::invalid_argument);
  CHECK(status.text().find("'a'") != std::string::npos);
  CHECK(status.text().find("[2], not [3]") != std::string::npos);
  p.put({{"a", a}, {"b", b}});
  p.s.run({}, {p.load});
  p.check(9, 9);
}

TEST_CASE("a place that cannot be written is named") {
  Pair p;
  Op nowhere = save(constant(p.g, Tensor::scalar<std::string>(p.dir.path("none/model"))),
                    {p.a.value()}, {"a"});
  Status status = p.s.try_run({}, {nowhere}).status();
  CHECK(!status.ok());
  CHECK(status.text().find("none/model.safetensors") != std::string::npos);
  CHECK(status.text().find("Save") != std::string::npos);
  CHECK(status.text().find("files_test.cpp") != std::string::npos);
}

TEST_CASE("assignments of restored values and the rest of the run are one transaction") {
  Pair p;
  p.put({{"a", Tensor::of<float>({3}, {9, 9, 9})}, {"b", Tensor::scalar<std::int64_t>(9)}});
  Output index = placeholder<std::int64_t>(p.g, {1}, "index");
  Op fails = gather(constant<float>(p.g, {2}, {1, 2}), index);
  auto step = p.s.compile({}, {p.load, fails}, {index});
  auto run = [&](std::int64_t i) {
    return step.try_run({Tensor::of<std::int64_t>({1}, {i})}).status();
  };
  CHECK(run(5).code() == Code::invalid_argument);
  p.check(1, 7);
  CHECK(run(1).ok());
  p.check(9, 9);
}

TEST_CASE("readers see all restored values or none") {
  Pair p;
  p.put({{"a", Tensor::of<float>({3}, {9, 9, 9})}, {"b", Tensor::scalar<std::int64_t>(9)}});
  Op reset = group(p.g, {assign(p.a, constant<float>(p.g, {3}, {1, 2, 3})),
                         assign(p.b, constant(p.g, std::int64_t{7}))});
  auto read = p.s.compile({p.a.value(), p.b.value()});
  auto load = p.s.compile({}, {p.load}), back = p.s.compile({}, {reset});
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
