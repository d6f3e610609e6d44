#include "graph/print.hpp"

#include <doctest/doctest.h>

#include "tests/graph/sample_ops.hpp"

namespace troupe {
namespace {

GraphDef printed_graph() {
  GraphBuilder g(sample::ops());
  Output x = sample::placeholder(g, "x", {2, -1});
  auto device = g.with_device("/cpu:0");
  auto scope = g.with_scope("h");
  NodeSpec spec{.op = "Both", .inputs = {x, x}, .control = {x}};
  spec.site = {"a.cpp", 3};
  g.add("Neg", {g.add(spec).output(1)});
  return g.def();
}

TEST_CASE("a graph prints one node per line") {
  CHECK(to_text(printed_graph()) ==
        "x = Placeholder() {T: f32, shape: [2,?]} : f32[2,?]\n"
        "h/Both = Both(x, x, ^x) {T: f32} : f32[2,?], f32[2,?] on /cpu:0 # a.cpp:3\n"
        "h/Neg = Neg(h/Both:1) {T: f32} : f32[2,?] on /cpu:0\n");
}

TEST_CASE("a graph prints as DOT, a cluster per device and control edges dashed") {
  CHECK(to_dot(printed_graph()) ==
        "digraph troupe {\n"
        "  node [shape=box, fontsize=10];\n"
        "  edge [fontsize=8];\n"
        "  n0 [label=\"x\\nPlaceholder\", tooltip=\"T: f32; shape: [2,?]\", shape=ellipse];\n"
        "  subgraph cluster_0 {\n"
        "    label=\"/cpu:0\";\n"
        "    n1 [label=\"h/\\nBoth\\nBoth\", tooltip=\"a.cpp:3; T: f32\"];\n"
        "    n2 [label=\"h/\\nNeg\\nNeg\", tooltip=\"T: f32\"];\n"
        "  }\n"
        "  n0 -> n1 [label=\"f32[2,?]\"];\n"
        "  n0 -> n1 [label=\"f32[2,?]\"];\n"
        "  n0 -> n1 [style=dashed];\n"
        "  n1 -> n2 [label=\"f32[2,?]\"];\n"
        "}\n");
}

TEST_CASE("a graph that no check has seen prints too") {
  GraphDef graph = printed_graph();
  graph.nodes[1].inputs[0] = {7, 2};
  graph.nodes[1].control = {9};
  graph.nodes[2].inputs[0].index = 5;
  graph.nodes[2].name = "quo\"te\\\n";
  graph.nodes[2].attrs["long"] = std::string(1000, 'a');
  graph.nodes[0].out_shapes.clear();
  CHECK(to_text(graph).find("Both(?7:2, x, ^?9:0)") != std::string::npos);
  CHECK(to_text(graph).size() < 500);
  CHECK(to_dot(graph).find("quo\\\"te\\\\ \\nNeg") != std::string::npos);
}

}  // namespace
}  // namespace troupe
