// ops/api: operators, constants, variables, sites; the definitions of state ops.
#include <doctest/doctest.h>

#include "tests/ops/api_interpreter.hpp"

using namespace troupe;
using troupe::test::Interpreter;

namespace {

template <class F>
Status thrown(F f) {
  try {
    f();
  } catch (const Error& e) {
    return e.status();
  }
  return {};
}

Tensor one(Interpreter& run, const Output& y) { return run.run({y})[0]; }

}  // namespace

TEST_CASE("operators mix graph values and numbers of the other side's dtype") {
  Graph g;
  Output x = constant<float>(g, {3}, {1, 2, 4});
  Interpreter run(g);
  CHECK(Tensor::same(one(run, 2 * x + 1), Tensor::of<float>(Shape{3}, {3, 5, 9})));
  CHECK(Tensor::same(one(run, 1 - x), Tensor::of<float>(Shape{3}, {0, -1, -3})));
  CHECK(Tensor::same(one(run, -(x / 2)), Tensor::of<float>(Shape{3}, {-.5, -1, -2})));
  CHECK(Tensor::same(one(run, x * x - x), Tensor::of<float>(Shape{3}, {0, 2, 12})));
  CHECK(Tensor::same(one(run, x >= 2), Tensor::of<bool>(Shape{3}, {false, true, true})));
  CHECK(Tensor::same(one(run, x == 2), Tensor::of<bool>(Shape{3}, {false, true, false})));
  CHECK(Tensor::same(one(run, 2 != x), Tensor::of<bool>(Shape{3}, {true, false, true})));
  Output n = constant<std::int64_t>(g, {2}, {7, 8});
  CHECK(Tensor::same(one(run, n + 1), Tensor::of<std::int64_t>(Shape{2}, {8, 9})));
}

TEST_CASE("a number that the other side cannot hold is refused where it stands") {
  Graph g;
  Output bytes = constant<std::uint8_t>(g, {2}, {1, 2});
  Status s = thrown([&] { bytes + 300; });
  CHECK(s.code() == Code::invalid_argument);
  CHECK(s.site().line == __LINE__ - 2);
  CHECK(thrown([&] { bytes + 1.5; }).code() == Code::invalid_argument);
  CHECK(thrown([&] { bytes + -1; }).code() == Code::invalid_argument);
  CHECK(scalar_of(DType::i64, 9.3e18).status().code() == Code::invalid_argument);
  CHECK(scalar_of(DType::i64, std::int64_t{1} << 62).value().item<std::int64_t>() == std::int64_t{1}
                                                                                         << 62);
}

TEST_CASE("nodes and errors carry the line of the call, and so do operators") {
  Graph g;
  Output a = constant<float>(g, {2, 3}, {1, 2, 3, 4, 5, 6});
  Output sum = a + a;
  CHECK(g.node(sum.node()).site.line == __LINE__ - 1);
  CHECK(g.node(sum.node()).site.file.ends_with("api_graph_test.cpp"));
  Output root = sqrt(a);
  CHECK(g.node(root.node()).site.line == __LINE__ - 1);
  Status s = thrown([&] { mat_mul(a, a); });
  CHECK(s.site().line == __LINE__ - 1);
  CHECK(s.message().find("note: constant f32[2,3] {1, 2, 3, 4, 5, 6}") != std::string::npos);
}

TEST_CASE("wrappers take options by name") {
  Graph g;
  Interpreter run(g);
  Output a = constant<float>(g, {2, 1}, {1, 2});
  CHECK(one(run, mat_mul(a, a, {.transpose_a = true})).item<float>() == 5);
  Output x = constant<float>(g, {2, 2}, {1, 2, 3, 5});
  CHECK(one(run, mean(x)).item<float>() == 2.75f);
  CHECK(Tensor::same(one(run, sum(x, {.axes = {1}})), Tensor::of<float>(Shape{2}, {3, 8})));
  CHECK(Tensor::same(one(run, argmax(x, 0)), Tensor::of<std::int64_t>(Shape{2}, {1, 1})));
  CHECK(Tensor::same(one(run, cast<std::int32_t>(x)),
                     Tensor::of<std::int32_t>(Shape{2, 2}, {1, 2, 3, 5})));
  CHECK(one(run, flatten(reshape(x, {1, 2, 2, 1}))).shape() == Shape{1, 4});
}

TEST_CASE("an empty Output is refused with the line of the call") {
  Graph g;
  Status s = thrown([&] { relu(Output()); });
  CHECK(s.code() == Code::invalid_argument);
  CHECK(s.site().line == __LINE__ - 2);
  CHECK(thrown([&] { add(constant(g, 1.f), Output()); }).code() == Code::invalid_argument);
}

TEST_CASE("a variable has a handle, one read, and an initial value that init assigns") {
  Graph g;
  Variable v = variable(g, "v", Tensor::of<float>(Shape{2}, {1, 2}));
  CHECK(v.name() == "v");
  CHECK(v.shape() == PartialShape{2});
  CHECK(g.find("v/init").node() == g.initializers().at(0));
  CHECK(g.find("v/read").output().is(v.value()));
  Interpreter run(g);
  run.init();
  CHECK(Tensor::same(one(run, v + 1), Tensor::of<float>(Shape{2}, {2, 3})));
  Op more = assign_add(v, constant<float>(g, {2}, {10, 20}));
  run.run({}, {more});
  run.run({}, {assign_sub(v, constant<float>(g, {2}, {1, 1}))});
  CHECK(Tensor::same(run.variable(v), Tensor::of<float>(Shape{2}, {10, 21})));
}

TEST_CASE("a write of another shape or dtype is refused while building") {
  Graph g;
  Variable v = variable(g, "v", Tensor::of<float>(Shape{2}, {1, 2}));
  Status s = thrown([&] { assign(v, constant<float>(g, {3}, {1, 2, 3})); });
  CHECK(s.message().find("value has shape [3], but the variable has [2]") != std::string::npos);
  CHECK(thrown([&] {
          apply_gradient_descent(v.handle(), constant<float>(g, {2}, {1, 1}), v);
        })
            .message()
            .find("lr must have rank 0") != std::string::npos);
  CHECK(thrown([&] {
          variable(g, "w", placeholder<float>(g, {-1, 2}));
        }).code() == Code::invalid_argument);
}

TEST_CASE("trainable variables are those marked so, of float dtype, in order of creation") {
  Graph g;
  Variable a = variable(g, "a", Tensor::scalar(1.f));
  variable(g, "frozen", Tensor::scalar(1.f), {.trainable = false});
  variable(g, "count", Tensor::scalar<std::int64_t>(0));
  Variable b = variable(g, "b", Tensor::scalar(2.0));
  read(a);
  auto all = trainable_variables(g);
  REQUIRE(all.size() == 2);
  CHECK(all[0].value().is(a.value()));
  CHECK(all[1].handle().is(b.handle()));
}

TEST_CASE("queues and datasets check their attributes and shape their outputs") {
  Graph g;
  Output q = fifo_queue(g, {DType::f32, DType::i64}, {.shapes = {{2}, {}}, .capacity = 4});
  auto element = dequeue(q, {DType::f32, DType::i64}, {.shapes = {{2}, {}}});
  REQUIRE(element.size() == 2);
  CHECK(element[0].shape() == PartialShape{2});
  CHECK(element[1].dtype() == DType::i64);
  CHECK(thrown([&] { fifo_queue(g, {DType::f32}, {.capacity = 0}); }).code() ==
        Code::invalid_argument);
  CHECK(thrown([&] {
          fifo_queue(g, {DType::f32}, {.shapes = {{2}, {3}}});
        }).code() == Code::invalid_argument);
  CHECK(queue_size(q).dtype() == DType::i64);

  auto [x, y] = data::digits(100).batch(8).repeat().outputs(g);
  CHECK(x.shape() == PartialShape{8, 28, 28, 1});
  CHECK(y.dtype() == DType::i64);
  auto [tx, ty] = data::idx("mnist", data::Split::test).batch(8).outputs(g);
  CHECK(tx.shape() == PartialShape{-1, 28, 28, 1});
  CHECK(thrown([&] { data::digits(10).batch(0).outputs(g); }).code() == Code::invalid_argument);
}
