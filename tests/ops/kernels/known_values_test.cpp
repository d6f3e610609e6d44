// What is known of shapes before a run, through the ops that compute with them.
#include <doctest/doctest.h>

#include <limits>
#include <optional>

#include "graph/gradients.hpp"
#include "graph/import.hpp"
#include "ops/api.hpp"
#include "ops/graph_api.hpp"
#include "tests/ops/api_interpreter.hpp"

using namespace troupe;

namespace {

Output ints(Graph& g, std::initializer_list<std::int64_t> values) {
  return constant(g, Shape{std::int64_t(values.size())}, values);
}

// Of a scalar that is known before a run.
std::optional<std::int64_t> known(Graph& g, Output x) {
  const Tensor* value = g.constant(x.port());
  return value ? std::optional(value->item<std::int64_t>()) : std::nullopt;
}

// A batch of unknown size.
struct Batch {
  Graph g;
  Output x = placeholder<float>(g, {-1, 28, 28, 3}, "x");
  Output shape = troupe::shape(x);
};

}  // namespace

TEST_CASE("known values keep the other dimensions of a dynamic batch through its shape") {
  Batch b;
  Output batch = slice(b.shape, ints(b.g, {0}), ints(b.g, {1}));
  Output rows = slice(b.shape, ints(b.g, {1}), ints(b.g, {1}));
  Output rest = slice(b.shape, ints(b.g, {2}), ints(b.g, {-1}));
  Output doubled = b.g.add("Mul", {rows, ints(b.g, {2})});
  Output halves = b.g.add("FloorDiv", {rest, ints(b.g, {1, 3})});
  Output list = concat({batch, doubled, halves}, {});
  CHECK(fill(list, constant(b.g, 0.0f)).shape() == PartialShape{-1, 56, 28, 1});
  Output flat = concat({batch, ints(b.g, {-1})}, {});
  CHECK(reshape(b.x, flat).shape() == PartialShape{-1, -1});
  Output sized = concat({batch, ints(b.g, {28 * 28 * 3})}, {});
  CHECK(reshape(b.x, sized).shape() == PartialShape{-1, 28 * 28 * 3});
}

TEST_CASE("known values go through Gather, Pack, Cast and Squeeze one by one") {
  Batch b;
  Output channels = gather(b.shape, constant(b.g, std::int64_t{3}));
  Output batch = gather(b.shape, constant(b.g, std::int64_t{0}));
  CHECK(known(b.g, channels) == 3);
  CHECK_FALSE(known(b.g, batch));
  Output list = pack({batch, channels, constant(b.g, std::int64_t{7})}, {});
  CHECK(fill(list, constant(b.g, 0.0f)).shape() == PartialShape{-1, 3, 7});
  Output narrow = cast(list, DType::i32);
  CHECK(fill(identity(narrow), constant(b.g, 0.0f)).shape() == PartialShape{-1, 3, 7});
  Output one = expand_dims(channels, 0);
  CHECK(fill(one, constant(b.g, 0.0f)).shape() == PartialShape{3});
  CHECK(known(b.g, squeeze(one, {})) == 3);
  auto parts = unpack(list, 3, {});
  CHECK(known(b.g, parts[2]) == 7);
  CHECK_FALSE(known(b.g, parts[0]));
}

TEST_CASE("known values come of Rank and Size, and go through Split") {
  Batch b;
  CHECK(known(b.g, b.g.add("Rank", {b.x})) == 4);
  CHECK_FALSE(known(b.g, b.g.add("Size", {b.x})));
  CHECK(known(b.g, b.g.add("Size", {b.shape})) == 4);
  Op halves = b.g.add(NodeSpec{.op = "Split", .inputs = {b.shape}, .attrs = {{"N", 2}}});
  CHECK(fill(halves.output(0), constant(b.g, 0.0f)).shape() == PartialShape{-1, 28});
  CHECK(fill(halves.output(1), constant(b.g, 0.0f)).shape() == PartialShape{28, 3});
}

TEST_CASE("known values leave one dimension open, which follows from the number of elements") {
  Graph g;
  Output x = placeholder<float>(g, {4, 6}, "x"), y = placeholder<float>(g, {-1, 8}, "y");
  Output open = gather(shape(y), constant(g, std::int64_t{0}));
  auto reshaped = [&](std::int64_t other) {
    return reshape(x, pack({open, constant(g, other)})).shape();
  };
  CHECK(reshaped(8) == PartialShape{3, 8});
  CHECK(reshaped(0) == PartialShape{-1, 0});
  CHECK(reshaped(5) == PartialShape{-1, 5});  // a run says that it is wrong
}

TEST_CASE("known values are none that overflow or that an op refuses") {
  Graph g;
  const std::int64_t most = std::numeric_limits<std::int64_t>::max();
  auto computed = [&](const char* op, std::int64_t a, std::int64_t b) {
    return known(g, g.add(op, {constant(g, a), constant(g, b)}));
  };
  CHECK_FALSE(computed("Add", most, 1));
  CHECK_FALSE(computed("Sub", -most, 2));
  CHECK_FALSE(computed("Mul", most, 2));
  CHECK_FALSE(computed("Div", 1, 0));
  CHECK_FALSE(computed("Div", -most - 1, -1));
  CHECK(computed("FloorDiv", -7, 2) == -4);
  CHECK(computed("Mod", -7, 2) == 1);
  CHECK(computed("Maximum", -7, 2) == 2);
  Output large = constant(g, std::int64_t{1} << 40);
  CHECK(g.constant(cast(large, DType::i32).port()) == nullptr);
}

TEST_CASE("known values of a builder are those of the imported graph") {
  Batch b;
  Output channels = gather(b.shape, constant(b.g, std::int64_t{3}));
  Output list = pack({channels, gather(b.shape, constant(b.g, std::int64_t{0}))}, {});
  Output y = fill(list, constant(b.g, 0.0f));
  GraphDef bare = b.g.def();
  for (NodeDef& node : bare.nodes) {
    node.out_types.clear();
    node.out_shapes.clear();
  }
  auto imported = import_graph(std::move(bare), ops::builtin().ops);
  REQUIRE_MESSAGE(imported.ok(), imported.status().text());
  for (NodeId id = 0; id < b.g.def().nodes.size(); ++id)
    CHECK(imported->nodes[id].out_shapes == b.g.def().nodes[id].out_shapes);
  CHECK(y.shape() == PartialShape{3, -1});
}

TEST_CASE("dropout takes a batch that has no known values of its shape before the run") {
  Graph g;
  Output x = placeholder<float>(g, {-1, 8}, "x");
  Output y = dropout(x, 0.25);
  CHECK(y.shape() == PartialShape{-1, 8});
  const Output ys[] = {y}, xs[] = {x};
  auto dx = gradients(ys, xs);
  REQUIRE_MESSAGE(dx.ok(), dx.status().text());
  test::Interpreter run(g);
  for (std::int64_t batch : {500, 0}) {
    const Shape shape{batch, 8};
    const std::vector<float> ones(std::size_t(shape.elements()), 1.f);
    auto made = run.run({y, (*dx)[0]}, {}, {{x.port().node, Tensor::of<float>(shape, ones)}});
    CHECK(made[0].shape() == shape);
    CHECK(Tensor::same(made[0], made[1]));  // what is kept of a 1 is what is kept of the gradient
    int kept = 0;
    for (float v : made[0].span<float>()) {
      REQUIRE((v == 0 || v == doctest::Approx(1 / 0.75)));
      kept += v != 0;
    }
    CHECK(double(kept) == doctest::Approx(0.75 * double(shape.elements())).epsilon(0.05));
  }
}

TEST_CASE("dropout of an unknown rank has no known values and an unknown shape") {
  Graph g;
  Output x = placeholder<float>(g, PartialShape::unknown(), "x");
  CHECK_FALSE(dropout(x, 0.5).shape().known_rank());
}

TEST_CASE("a list too long for known values is refused as a shape all the same") {
  Graph g;
  Output x = placeholder<float>(g, {1}, "x");
  const std::vector<std::int64_t> ones(17, 1);
  Output list = constant(g, Tensor::of<std::int64_t>(Shape{17}, ones));
  CHECK_THROWS_AS(reshape(x, list), Error);
  CHECK_THROWS_AS(fill(list, constant(g, 0.0f)), Error);
}
