#include "graph/builder.hpp"

#include <doctest/doctest.h>

#include "graph/import.hpp"
#include "tests/graph/sample_ops.hpp"

namespace troupe {
namespace {

using sample::constant;
using sample::placeholder;

std::string error_of(GraphBuilder& g, NodeSpec spec) {
  std::size_t before = g.def().nodes.size();
  auto op = g.try_add(std::move(spec));
  REQUIRE_FALSE(op.ok());
  CHECK(g.def().nodes.size() == before);
  return op.status().message();
}

TEST_CASE("a node gets its types, shapes and defaults") {
  GraphBuilder g(sample::ops());
  Output a = placeholder(g, "a", {32, 784});
  Output b = placeholder(g, "b", {784, -1});
  Output y = g.add("MatMul", {a, b});
  CHECK(y.dtype() == DType::f32);
  CHECK(y.shape() == PartialShape{32, -1});
  CHECK(g.node(y.node()).attrs.at("T") == Attr(DType::f32));
  CHECK(g.node(y.node()).attrs.at("transpose_a") == Attr(false));
  CHECK(y.name() == "MatMul");
  REQUIRE(Op(y).outputs().size() == 1);
  CHECK(Op(y).outputs()[0].is(y));
}

TEST_CASE("an error reads like a compiler's, with the place of every input") {
  GraphBuilder g(sample::ops());
  Output a = placeholder(g, "x", {32, 784}, DType::f32, {"mnist.cpp", 13});
  Output b = placeholder(g, "w", {748, 128}, DType::f32, {"mnist.cpp", 14});
  try {
    g.add("MatMul", {a, b}, {}, {"mnist.cpp", 15});
    FAIL("nothing was thrown");
  } catch (const Error& e) {
    CHECK(std::string(e.what()) ==
          "mnist.cpp:15: error: MatMul: inner dimensions differ: a is [32,784], b is [748,128]\n"
          "mnist.cpp:13: note: 'x' created here: f32[32,784]\n"
          "mnist.cpp:14: note: 'w' created here: f32[748,128]");
    CHECK(e.status().code() == Code::invalid_argument);
    CHECK(e.status().site() == Site{"mnist.cpp", 15});
  }
  CHECK(g.def().nodes.size() == 2);
}

TEST_CASE("wrong nodes are refused with a reason") {
  GraphBuilder g(sample::ops()), other(sample::ops());
  Output f = placeholder(g, "f", {2}), d = placeholder(g, "d", {2}, DType::f64);
  Output i = placeholder(g, "i", {2}, DType::i32), foreign = placeholder(other, "o", {2});
  Output yes = placeholder(g, "yes", {2}, DType::bool_);
  auto has = [&](NodeSpec spec, std::string_view part) {
    std::string message = error_of(g, std::move(spec));
    INFO(message);
    CHECK(message.find(part) != std::string::npos);
  };
  has({.op = "Add", .inputs = {f}}, "takes 2 inputs (a, b), got 1");
  has({.op = "Add", .inputs = {f, f, f}}, "takes 2 inputs (a, b), got 3");
  has({.op = "AddN"}, "at least one");
  has({.op = "Add", .inputs = {f, d}},
      "Input 1 of node Add was passed f64 from d, expected f32 (argument b)");
  has({.op = "AddN", .inputs = {f, f, i}}, "(argument values[2])");
  has({.op = "Square", .inputs = {i}}, "i32, which is not one of {f32 f64}");
  has({.op = "Square", .inputs = {yes}}, "bool, which is not one of {f32 f64}: cast it to numbers");
  has({.op = "Square", .inputs = {f}, .attrs = {{"T", DType::f64}}}, "expected f64");
  has({.op = "Square", .inputs = {f}, .attrs = {{"transposed", true}}}, "has no attribute");
  has({.op = "MatMul", .inputs = {f, f}, .attrs = {{"transpose_b", true}}},
      "did you mean transpose_a?");
  has({.op = "MatMul", .inputs = {f, f}, .attrs = {{"transpose_a", 1}}},
      "'transpose_a' is a int, expected bool");
  has({.op = "MatMul", .inputs = {f, f}}, "a must have rank 2, not [2]");
  has({.op = "Split", .inputs = {f}}, "attribute 'N' (int) is missing");
  has({.op = "Split", .inputs = {f}, .attrs = {{"N", 1 << 30}}}, "list of 1073741824");
  has({.op = "Split", .inputs = {f}, .attrs = {{"N", -1}}}, "list of -1");
  has({.op = "Split", .inputs = {f}, .attrs = {{"N", 2}, {"mode", "odder"}}},
      "not one of {even odd}");
  has({.op = "Placeholder"}, "attribute 'T' (type) is missing");
  has({.op = "Placeholder", .attrs = {{"T", DType::resource}}}, "not an element type");
  has({.op = "Add", .inputs = {f, foreign}}, "of another graph");
  has({.op = "Add", .inputs = {f, Output()}}, "input 1 is empty");
  has({.op = "Add", .inputs = {f, f.sibling(3)}}, "without that output");
  has({.op = "Adx", .inputs = {f, f}}, "did you mean Add");
  has({.op = "Add", .inputs = {f, f}, .name = "white space"}, "is no node name");
  has({.op = "Add", .inputs = {f, f}, .device = "/cpu:x"}, "");
  has({.op = "Const", .attrs = {{"T", DType::f32}, {"value", Tensor()}}}, "without elements");
  has({.op = "Placeholder", .attrs = {{"T", DType::f32}, {"shape", PartialShape{1ll << 62, 4}}}},
      "2^63");
}

TEST_CASE("lists, output lists and equal attributes of other kinds") {
  GraphBuilder g(sample::ops());
  Output f = placeholder(g, "f", {2}), i = placeholder(g, "i", {3}, DType::i32);
  Output sum = g.add("AddN", {f, f, f});
  CHECK(g.node(sum.node()).attrs.at("N") == Attr(3));
  Op mixed = g.add({.op = "IdentityN", .inputs = {f, i}});
  CHECK(mixed.outputs().size() == 2);
  CHECK(mixed.output(1).dtype() == DType::i32);
  CHECK(g.node(mixed.node()).attrs.at("types") == Attr(std::vector<DType>{DType::f32, DType::i32}));
  Op split = g.add({.op = "Split", .inputs = {f}, .attrs = {{"N", 4}, {"rate", 1}}});
  CHECK(split.outputs().size() == 4);
  CHECK(g.node(split.node()).attrs.at("rate") == Attr(1.0));
  CHECK(g.node(split.node()).attrs.at("strides") == Attr(std::vector<std::int64_t>{1, 1}));
  const OpInfo& addn = *sample::ops().find("AddN");
  CHECK(addn.input_name(g.node(sum.node()), 2) == "values[2]");
}

TEST_CASE("names are unique, under scopes too") {
  GraphBuilder g(sample::ops());
  Output x = placeholder(g, "x", {2});
  CHECK(g.add("Neg", {x}).name() == "Neg");
  CHECK(g.add("Neg", {x}).name() == "Neg_1");
  CHECK(Op(placeholder(g, "Neg_2", {})).name() == "Neg_2");
  CHECK(g.add("Neg", {x}).name() == "Neg_3");
  {
    auto scope = g.with_scope("mlp");
    CHECK(g.add("Neg", {x}).name() == "mlp/Neg");
    auto inner = g.with_scope("h");
    CHECK(g.add("Neg", {x}).name() == "mlp/h/Neg");
    auto full = g.with_scope("mlp/");
    CHECK(g.add("Neg", {x}).name() == "mlp/Neg_1");
    auto root = g.with_scope("");
    CHECK(g.scope_prefix() == "");
  }
  auto again = g.with_scope("mlp");
  CHECK(g.add("Neg", {x}).name() == "mlp_1/Neg");
  CHECK(g.find("mlp/h/Neg").name() == "mlp/h/Neg");
  CHECK(g.find("mlp/nothing").empty());
}

TEST_CASE("devices, control edges, sites and colocation come from the guards") {
  GraphBuilder g(sample::ops());
  Output x = placeholder(g, "x", {2}), y = placeholder(g, "y", {2});
  auto device = g.with_device("/job:worker/task:1/cpu:0");
  auto site = g.with_site({"a.cpp", 3});
  auto control = g.with_control({y, x});
  auto colocation = g.with_colocation("x");
  NodeSpec spec{.op = "Neg", .inputs = {x}, .control = {x}, .device = "/gpu:1"};
  const NodeDef& node = g.node(g.add(spec).node());
  CHECK(node.device == "/job:worker/task:1/gpu:1");
  CHECK(node.site == Site{"a.cpp", 3});
  CHECK(node.control == std::vector<NodeId>{x.node(), y.node()});
  CHECK(node.colocate == std::vector<std::string>{"x"});
  {
    auto other = g.with_device("/fake:*");
    CHECK(g.node(g.add("Neg", {x}, {}, {"b.cpp", 4}).node()).device ==
          DeviceName::parse("/job:worker/task:1/fake:*")->text());
  }
  CHECK_THROWS_AS((void)g.with_device("/nonsense"), Error);
  CHECK(g.node(g.add("Neg", {x}).node()).device == "/job:worker/task:1/cpu:0");
}

TEST_CASE("values known while building reach the shape functions") {
  GraphBuilder g(sample::ops());
  Output x = placeholder(g, "x", {2, 3}), unknown = placeholder(g, "u", {2, -1});
  Output one = constant(g, Tensor::scalar(1.0f));
  Output dims = constant(g, Tensor::of<std::int64_t>(Shape{2}, {4, 5}));
  CHECK(g.add("Fill", {dims, one}).shape() == PartialShape{4, 5});
  CHECK(g.add("Fill", {g.add("Shape", {x}), one}).shape() == PartialShape{2, 3});
  CHECK(g.add("Fill", {g.add("Shape", {unknown}), one}).shape() == PartialShape{2, -1});
  Output narrow = g.add("Shape", {x}, {{"out_type", DType::i32}});
  CHECK(g.add("Fill", {narrow, one}).shape() == PartialShape{2, 3});
  CHECK(Tensor::same(*g.constant(narrow.port()), Tensor::of<std::int32_t>(Shape{2}, {2, 3})));
}

TEST_CASE("values known in part are forgotten with the nodes of an attempt that failed") {
  GraphBuilder g(sample::ops());
  Output x = placeholder(g, "x", {2, -1});
  Output one = constant(g, Tensor::scalar(1.0f));
  {
    GraphBuilder::Attempt attempt(g);
    (void)g.add("Shape", {x});
  }
  Output y = g.add("Neg", {x});  // has the number that the shape had
  CHECK(g.constant(y.port()) == nullptr);
  CHECK(g.add("Fill", {g.add("Shape", {y}), one}).shape() == PartialShape{2, -1});
}

TEST_CASE("a composite becomes its parts under a scope") {
  GraphBuilder g(sample::ops());
  Output a = placeholder(g, "a", {2}), b = placeholder(g, "b", {2});
  auto scope = g.with_scope("net");
  NodeSpec spec{.op = "SquarePlus", .inputs = {a, b}, .name = "loss", .control = {b}};
  spec.site = {"a.cpp", 9};
  Op y = g.add(spec);
  CHECK(y.name() == "net/loss/Add");
  CHECK(g.find("net/loss/Square").name() == "net/loss/Square");
  CHECK(g.node(y.node()).site == Site{"a.cpp", 9});
  CHECK(g.node(y.node()).control == std::vector<NodeId>{b.node()});
  CHECK(g.add("Neg", {a}).name() == "net/Neg");
  Op swapped = g.add({.op = "Swap", .inputs = {a, b}});
  CHECK(swapped.outputs().size() == 2);
  CHECK(g.node(swapped.node()).inputs == std::vector<Port>{b.port(), a.port()});
}

TEST_CASE("a composite that fails leaves nothing behind") {
  GraphBuilder g(sample::ops());
  Output a = placeholder(g, "a", {2});
  auto failed = g.try_add({.op = "Broken", .inputs = {a}, .site = {"a.cpp", 3}});
  REQUIRE_FALSE(failed.ok());
  CHECK(failed.status().site() == Site{"a.cpp", 3});
  CHECK(g.def().nodes.size() == 1);
  CHECK(g.find("Broken/Square").empty());
  auto scope = g.with_scope("Broken");
  CHECK(g.add("Square", {a}).name() == "Broken/Square");  // the names are free again
}

TEST_CASE("names that begin with a dot are for nodes of sessions") {
  GraphBuilder g(sample::ops());
  Output x = placeholder(g, "x", {2});
  const Status status = g.try_add({.op = "Neg", .inputs = {x}, .name = ".restore0/0"}).status();
  CHECK(status.code() == Code::invalid_argument);
  CHECK(status.message().find("begins with a dot") != std::string::npos);
  CHECK_THROWS_AS((void)g.with_scope(".restore0"), Error);
  CHECK_THROWS_AS((void)g.with_scope(".restore0/"), Error);
  auto scope = g.with_scope("a");
  CHECK(g.try_add({.op = "Neg", .inputs = {x}, .name = ".b"}).ok());  // "a/.b"
  GraphDef def = g.def();
  def.nodes[1].name = ".save_shards0/folder";
  CHECK_THROWS_AS(GraphBuilder(sample::ops(), def), Error);
  CHECK(import_graph(def, sample::ops()).ok());  // as a session sends it
}

TEST_CASE("a loop is closed by a value that keeps its type and shape") {
  GraphBuilder g(sample::ops());
  Output x = placeholder(g, "x", {2}), wide = placeholder(g, "wide", {3});
  Output d = placeholder(g, "d", {2}, DType::f64);
  Output merge = g.add("Merge", {x, x});
  Output next = g.add("NextIteration", {g.add("Neg", {merge})});
  CHECK(g.close_loop(merge.node(), 1, next).ok());
  CHECK(g.node(merge.node()).inputs[1] == next.port());
  auto refused = [&](NodeId node, int index, Output value) {
    return g.close_loop(node, index, value).code() == Code::invalid_argument;
  };
  CHECK(refused(merge.node(), 2, next));
  CHECK(refused(merge.node(), -1, next));
  CHECK(refused(next.node(), 0, next));
  CHECK(refused(merge.node(), 1, x));
  CHECK(refused(merge.node(), 1, g.add("NextIteration", {wide})));
  CHECK(refused(merge.node(), 1, g.add("NextIteration", {d})));
  CHECK(g.node(merge.node()).inputs[1] == next.port());
}

TEST_CASE("a loop that was closed in an attempt is open again when the attempt is taken back") {
  GraphBuilder g(sample::ops());
  Output x = placeholder(g, "x", {2});
  Output merge = g.add("Merge", {x, x}), kept = g.add("Merge", {x, x});
  {
    GraphBuilder::Attempt outer(g);
    Output next = g.add("NextIteration", {g.add("Neg", {merge})});
    throw_if_error(g.close_loop(kept.node(), 1, next));
    {
      GraphBuilder::Attempt inner(g);
      throw_if_error(g.close_loop(merge.node(), 0, g.add("NextIteration", {merge})));
      throw_if_error(g.close_loop(merge.node(), 0, next));
    }
    CHECK(g.node(merge.node()).inputs == std::vector<Port>{x.port(), x.port()});
    {
      GraphBuilder::Attempt inner(g);
      throw_if_error(g.close_loop(merge.node(), 0, next));
      inner.keep();
    }
    CHECK(g.node(kept.node()).inputs[1] == next.port());
    CHECK(g.node(merge.node()).inputs[0] == next.port());
  }
  CHECK(g.node(merge.node()).inputs == std::vector<Port>{x.port(), x.port()});
  CHECK(g.node(kept.node()).inputs == std::vector<Port>{x.port(), x.port()});
}

}  // namespace
}  // namespace troupe
