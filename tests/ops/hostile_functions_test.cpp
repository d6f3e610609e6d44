// Functions from the wire: whatever they are, the graph is refused or compiles, or its compile is
// refused. Nothing crashes, hangs, or takes much memory.
#include <doctest/doctest.h>

#include "core/hash.hpp"
#include "graph/compile.hpp"
#include "graph/control/functions/ops.hpp"
#include "graph/import.hpp"
#include "ops/api.hpp"

namespace troupe {
namespace {

// Branches, calls, writes and gradients of them, twice.
GraphDef valid() {
  Graph g;
  Output p = placeholder<bool>(g, PartialShape::scalar(), "p");
  Output x = placeholder<double>(g, {3}, "x");
  Variable v = variable(g, "v", Tensor::zeros(DType::f64, {3}).value());
  const ValueType three{DType::f64, {3}};
  Function f = g.function("f", {three}, {three}, [&](Function&, Output k) { return k * k * v; });
  Output y = cond(
      p,
      [&] {
        assign_add(v, x);
        return f(x) + read(v);
      },
      [&] {
        return switch_case(constant(g, 1), {[&] { return exp(x); }, [&] { return f(f(x)); }});
      });
  Output n = placeholder<std::int32_t>(g, PartialShape::scalar(), "n");
  Output repeated = std::get<1>(while_loop(
      std::tuple{constant(g, 0), y}, [&](Output i, Output) { return i < n; },
      [&](Output i, Output u) {
        Output inner = while_loop(
            u, [&](Output w) { return sum(w) < constant(g, 10.0); },
            [&](Output w) { return sin(w) + x; });
        return std::tuple{i + 1, cond(
                                     p, [&] { return exp(inner); }, [&] { return inner * inner; })};
      }));
  y = y + repeated;
  Output dx = value_or_throw(gradients(std::vector{sum(y)}, std::vector{x}))[0];
  Output ddx = value_or_throw(gradients(std::vector{sum(dx * dx)}, std::vector{x}))[0];
  identity(ddx, Site::here());
  return g.def();
}

std::uint32_t odd(Random& random, std::size_t size) {
  return random.below(8) == 0 ? std::uint32_t(random.below(1u << 31))
                              : std::uint32_t(random.below(size + 1));
}

void mutate_nodes(Random& random, std::vector<NodeDef>& nodes, const GraphDef& graph) {
  if (nodes.empty()) return;
  NodeDef& node = nodes[random.below(nodes.size())];
  switch (random.below(8)) {
    case 0:
      if (!node.inputs.empty())
        node.inputs[random.below(node.inputs.size())].node = odd(random, nodes.size());
      return;
    case 1:
      if (!node.inputs.empty())
        node.inputs[random.below(node.inputs.size())].index = odd(random, 3);
      return;
    case 2:
      node.control.push_back(odd(random, nodes.size()));
      return;
    case 3:
      node.op = nodes[random.below(nodes.size())].op;
      return;
    case 4: {
      const FunctionDef& f = graph.functions[random.below(graph.functions.size())];
      for (const char* name : {"function", "then_branch", "else_branch", "cond", "body"})
        if (node.attrs.contains(name) && random.below(2)) node.attrs[name] = f.name;
      if (node.attrs.contains("branches"))
        node.attrs["branches"] = std::vector<std::string>(random.below(3), f.name);
      return;
    }
    case 5:
      for (const char* name : {"port", "branch", "variables", "reverses"})
        if (node.attrs.contains(name)) node.attrs[name] = std::int64_t(random.below(5)) - 2;
      if (node.attrs.contains("nodes"))
        node.attrs["nodes"] = std::vector<std::string>(random.below(4), nodes.front().name);
      if (node.attrs.contains("functions"))
        node.attrs["functions"] = std::vector<std::string>(
            random.below(4), graph.functions[random.below(graph.functions.size())].name);
      if (node.attrs.contains("ports"))
        node.attrs["ports"] = std::vector<std::int64_t>(random.below(4), odd(random, 2));
      if (node.attrs.contains("node")) node.attrs["node"] = nodes[random.below(nodes.size())].name;
      return;
    case 6:
      if (!node.attrs.empty()) {
        auto at = node.attrs.begin();
        std::advance(at, std::ptrdiff_t(random.below(node.attrs.size())));
        const NodeDef& other = nodes[random.below(nodes.size())];
        if (auto same = other.attrs.find(at->first); same != other.attrs.end())
          at->second = same->second;
        else
          node.attrs.erase(at);
      }
      return;
    default:
      if (!node.inputs.empty() && random.below(2))
        node.inputs.pop_back();
      else
        node.inputs.push_back({odd(random, nodes.size()), odd(random, 2)});
  }
}

void mutate_function(Random& random, FunctionDef& f, const GraphDef& graph) {
  switch (random.below(8)) {
    case 0:
      if (!f.arguments.empty())
        f.arguments[random.below(f.arguments.size())] = odd(random, f.nodes.size());
      return;
    case 1:
      if (!f.arguments.empty()) f.arguments.pop_back();
      return;
    case 2:
      if (!f.results.empty())
        f.results[random.below(f.results.size())] = {odd(random, f.nodes.size()), odd(random, 2)};
      return;
    case 3:
      f.result_types.push_back(DType::f32);
      return;
    case 4:
      if (!f.result_shapes.empty()) f.result_shapes[0] = PartialShape::unknown_of_rank(2);
      return;
    case 5:
      f.name = graph.functions[random.below(graph.functions.size())].name;
      return;
    default:
      mutate_nodes(random, f.nodes, graph);
  }
}

Target target_here() {
  Target target;
  target.ops = &ops::builtin().ops;
  target.devices.push_back({*DeviceName::parse("/job:w/task:0/cpu:0")});
  target.devices.push_back({*DeviceName::parse("/job:w/task:1/cpu:0")});
  return target;
}

// Everything that has a value, and all feeds.
CompileRequest request_for(const GraphDef& graph, std::int32_t replicas) {
  CompileRequest request;
  for (const NodeDef& node : graph.nodes) {
    if (node.op == "Placeholder")
      request.feeds.push_back({node.name, 0, false});
    else if (node.op == "Identity" || node.op == "Assign")
      request.targets.push_back(node.name);
  }
  request.replicas = replicas;
  return request;
}

void bombard(std::uint64_t first, std::uint64_t seeds) {
  const GraphDef graph = valid();
  const Target target = target_here();
  std::size_t refused = 0, compiled = 0, refused_to_compile = 0;
  for (std::uint64_t seed = first; seed < first + seeds; ++seed) {
    CAPTURE(seed);
    Random random(seed);
    GraphDef odd_graph = graph;
    for (std::uint64_t n = 1 + random.below(3); n-- > 0;)
      if (random.below(4) == 0)
        mutate_nodes(random, odd_graph.nodes, graph);
      else
        mutate_function(random, odd_graph.functions[random.below(odd_graph.functions.size())],
                        graph);
    auto imported = import_graph(std::move(odd_graph), ops::builtin().ops);
    if (!imported.ok()) {
      CHECK(!imported.status().message().empty());
      ++refused;
      continue;
    }
    const Status s =
        compile(*imported, request_for(*imported, 1 + int(random.below(2))), target).status();
    ++(s.ok() ? compiled : refused_to_compile);
  }
  MESSAGE("seeds from " << first << ": refused " << refused << ", compiled " << compiled
                        << ", not compiled " << refused_to_compile);
  CHECK(refused > seeds / 8);
  CHECK(compiled > seeds / 50);
}

}  // namespace

TEST_CASE("the graph that is bombarded is a valid one, in any order of its functions") {
  GraphDef graph = valid();
  CHECK(graph.functions.size() >= 8);
  std::reverse(graph.functions.begin(), graph.functions.end());
  auto imported = import_graph(graph, ops::builtin().ops);
  REQUIRE_MESSAGE(imported.ok(), imported.status().text());
  for (std::int32_t replicas : {1, 2}) {
    auto compiled = compile(*imported, request_for(*imported, replicas), target_here());
    CHECK_MESSAGE(compiled.ok(), compiled.status().text());
  }
}

TEST_CASE("many small functions that ask for many outputs are refused before they have them") {
  GraphDef graph;
  for (int i = 0; i < 4000; ++i) {
    FunctionDef f;
    f.name = "f" + std::to_string(i);
    NodeDef x{.name = "x", .op = "Argument"};
    x.attrs = {{"T", DType::f32}, {"shape", PartialShape{1 << 20}}};
    NodeDef node{.name = "n", .op = "Split", .inputs = {{0, 0}}};
    node.attrs = {{"N", std::int64_t{1} << 15}};
    f.nodes = {x, node};
    f.arguments = {0};
    graph.functions.push_back(std::move(f));
  }
  const Status s = import_graph(std::move(graph), ops::builtin().ops).status();
  CHECK_MESSAGE(s.code() == Code::resource_exhausted, s.text());
}

TEST_CASE("an index of many branches with many values is refused, not worked through") {
  GraphDef graph;
  FunctionDef f{.name = "f"};
  NodeDef index{.name = "index", .op = "Placeholder"};
  index.attrs = {{"T", DType::i32}, {"shape", PartialShape::scalar()}};
  NodeDef x{.name = "x", .op = "Placeholder"};
  x.attrs = {{"T", DType::f32}, {"shape", PartialShape::scalar()}};
  NodeDef call{.name = "case", .op = "Case", .inputs = {{0, 0}}};
  for (int i = 0; i < 2000; ++i) {
    NodeDef argument{.name = "a" + std::to_string(i), .op = "Argument"};
    argument.attrs = {{"T", DType::f32}, {"shape", PartialShape::scalar()}};
    f.arguments.push_back(NodeId(f.nodes.size()));
    f.nodes.push_back(std::move(argument));
    call.inputs.push_back({1, 0});
  }
  call.attrs = {{"branches", std::vector<std::string>(60'000, "f")}};
  graph.nodes = {index, x, call};
  graph.functions = {f};
  auto imported = import_graph(graph, ops::builtin().ops);
  REQUIRE_MESSAGE(imported.ok(), imported.status().text());
  CompileRequest request = request_for(*imported, 1);
  request.targets = {"case"};
  CHECK(compile(*imported, request, target_here()).status().code() == Code::resource_exhausted);
}

TEST_CASE("functions mutated in transit are refused or compile, or that is refused") {
  bombard(30000, 250);
}
TEST_CASE("[slow] many functions mutated in transit") { bombard(40000, 30000); }

}  // namespace troupe
