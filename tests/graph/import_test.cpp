#include <doctest/doctest.h>

#include <algorithm>
#include <limits>

#include "core/hash.hpp"
#include "graph/compile.hpp"
#include "graph/import.hpp"
#include "tests/graph/sample_ops.hpp"

namespace troupe {
namespace {

using sample::placeholder;

// A graph with lists, defaults, constants, control edges, devices and a loop.
GraphDef random_graph(Random& random) {
  GraphBuilder g(sample::ops(), random());
  auto site = g.with_site({"sample.cpp", 5});
  std::vector<Output> values = {placeholder(g, "x", {2, 3}), placeholder(g, "y", {2, -1})};
  auto pick = [&] { return values[random.below(values.size())]; };
  values.push_back(
      g.add("Fill", {g.add("Shape", {values[0]}), sample::constant(g, Tensor::scalar(1.0f))}));
  for (std::uint64_t i = 0, n = 3 + random.below(12); i < n; ++i) {
    auto device = g.with_device(random.below(3) ? "" : "/job:worker/cpu:1");
    auto scope = g.with_scope(random.below(3) ? g.scope_prefix() : "layer");
    NodeSpec spec;
    switch (random.below(6)) {
      case 0:
        spec = {.op = "Add", .inputs = {pick(), pick()}};
        break;
      case 1:
        spec = {.op = "AddN", .inputs = {pick(), pick(), pick()}};
        break;
      case 2:
        spec = {.op = "Split", .inputs = {pick()}, .attrs = {{"N", 2}}};
        break;
      case 3:
        spec = {.op = "IdentityN", .inputs = {pick(), pick()}};
        break;
      case 4:
        spec = {.op = "Square", .inputs = {pick()}, .colocate = {"x"}};
        break;
      default:
        spec = {.op = "Neg", .inputs = {pick()}, .control = {pick(), pick()}};
    }
    for (Output o : g.add(spec).outputs()) values.push_back(o);
  }
  if (random.below(2)) {
    Output start = pick();
    Output merge = g.add("Merge", {start, start});
    Output next = g.add("NextIteration", {g.add("Square", {merge})});
    throw_if_error(g.close_loop(merge.node(), 1, next));
  }
  return g.def();
}

bool same(const NodeDef& a, const NodeDef& b) {
  return a.name == b.name && a.op == b.op && a.inputs == b.inputs && a.control == b.control &&
         a.attrs == b.attrs && a.device == b.device && a.colocate == b.colocate &&
         a.replica == b.replica && a.site == b.site && a.out_types == b.out_types &&
         a.out_shapes == b.out_shapes;
}

bool same(const GraphDef& a, const GraphDef& b) {
  if (a.seed != b.seed || a.nodes.size() != b.nodes.size()) return false;
  for (std::size_t i = 0; i < a.nodes.size(); ++i)
    if (!same(a.nodes[i], b.nodes[i])) return false;
  return true;
}

std::string error_of(const GraphDef& graph) {
  auto imported = import_graph(graph, sample::ops());
  REQUIRE_FALSE(imported.ok());
  return imported.status().text();
}

// x -> square -> sum(square, x)
GraphDef small() {
  GraphBuilder g(sample::ops());
  auto site = g.with_site({"small.cpp", 2});
  Output x = placeholder(g, "x", {2});
  g.add("Add", {g.add("Square", {x}), x});
  return g.def();
}

TEST_CASE("what a builder made comes through as it was") {
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    CAPTURE(seed);
    Random random(seed);
    GraphDef graph = random_graph(random);
    auto imported = import_graph(graph, sample::ops());
    REQUIRE_MESSAGE(imported.ok(), imported.status().report());
    CHECK(same(*imported, graph));
  }
}

TEST_CASE("types, shapes and defaults are computed, not believed") {
  GraphDef graph = small();
  GraphDef lying = graph;
  for (NodeDef& node : lying.nodes) {
    node.out_types.assign(3, DType::string);
    node.out_shapes.assign(1, PartialShape{9, 9});
  }
  lying.nodes[1].attrs.clear();
  lying.nodes[2].control = {1, 0, 1};
  auto imported = import_graph(lying, sample::ops());
  REQUIRE(imported.ok());
  CHECK(imported->nodes[2].control == std::vector<NodeId>{0, 1});
  imported->nodes[2].control.clear();
  CHECK(same(*imported, graph));
}

TEST_CASE("nodes in any order are put in order") {
  GraphDef graph = small();
  std::swap(graph.nodes[0], graph.nodes[2]);
  graph.nodes[0].inputs = {{1, 0}, {2, 0}};
  graph.nodes[1].inputs = {{2, 0}};
  auto imported = import_graph(graph, sample::ops());
  REQUIRE_MESSAGE(imported.ok(), imported.status().report());
  CHECK(same(*imported, small()));
}

TEST_CASE("each fault of a graph is named with its node and line") {
  auto has = [](const std::function<void(GraphDef&)>& harm, std::string_view part,
                std::string_view site = "small.cpp:2: ") {
    GraphDef graph = small();
    harm(graph);
    std::string text = error_of(graph);
    INFO(text);
    CHECK(text.starts_with(site));
    CHECK(text.find(part) != std::string::npos);
  };
  has([](GraphDef& g) { g.nodes[1].name = "a b"; }, "'a b' is no node name");
  has([](GraphDef& g) { g.nodes[1].name = std::string(5000, 'a'); }, "aaa...' is no node name");
  has([](GraphDef& g) { g.nodes[1].name = "x"; }, "nodes 0 and 1 are both named 'x'");
  has([](GraphDef& g) { g.nodes[1].op = "Sqare"; },
      "there is no op 'Sqare'; did you mean Square, Shape? (in node 'Square')");
  has([](GraphDef& g) { g.nodes[1].op = "SquarePlus"; }, "is built of other ops");
  has([](GraphDef& g) { g.nodes[1].attrs["rate"] = 1; }, "Square: has no attribute 'rate'");
  has([](GraphDef& g) { g.nodes[0].attrs.erase("T"); }, "attribute 'T' (type) is missing");
  has([](GraphDef& g) { g.nodes[0].attrs["shape"] = 3; }, "expected shape");
  has([](GraphDef& g) { g.nodes[0].attrs["T"] = DType(77); }, "not an element type");
  has([](GraphDef& g) { g.nodes[1].inputs[0].node = 9; },
      "Input 0 of node Square is node number 9 of 3");
  has([](GraphDef& g) { g.nodes[1].inputs[0].index = 1; },
      "Input 0 of node Square is output 1 of 'x', which has 1");
  has([](GraphDef& g) { g.nodes[1].inputs.clear(); }, "takes 1 inputs (x), got 0");
  has([](GraphDef& g) { g.nodes[2].control = {7}; },
      "A control input of node Add is node number 7");
  has([](GraphDef& g) { g.nodes[0].attrs["T"] = DType::f64; },
      "Input 0 of node Square was passed f64 from x:0, expected f32");
  has([](GraphDef& g) { g.nodes[1].device = "/cpu:0junk"; }, "in node 'Square'");
  has([](GraphDef& g) { g.nodes[1].replica = -5; }, "replica -5");
  has([](GraphDef& g) { g.nodes[1].replica = 0; }, "replica 0: only the step");
  has([](GraphDef& g) { g.nodes[1].colocate = {"Adt"}; }, "did you mean Add?");
  has(
      [](GraphDef& g) {
        g.nodes[1].inputs[0] = {2, 0};
      },
      "2 nodes in a cycle: 'Add' (small.cpp:2) -> 'Square' (small.cpp:2) -> 'Add'; only Merge "
      "nodes "
      "can have back edges");
  has([](GraphDef& g) { g.nodes[1].control = {1}; },
      "1 nodes in a cycle: 'Square' (small.cpp:2) -> 'Square'");
  has([](GraphDef& g) { g.nodes[1].site.file = "a\nb"; }, "not printable", "invalid_argument");
  has([](GraphDef& g) { g.nodes[0].op = "ReadVariable"; }, "has no attribute 'T'");
}

TEST_CASE("loops are checked as their builder would") {
  GraphBuilder g(sample::ops());
  Output x = placeholder(g, "x", {2});
  Output merge = g.add("Merge", {x, x});
  Output next = g.add("NextIteration", {g.add("Neg", {merge})});
  throw_if_error(g.close_loop(merge.node(), 1, next));
  CHECK(import_graph(g.def(), sample::ops()).ok());

  GraphDef wide = g.def();  // Neg becomes a value of another shape
  wide.nodes[2].op = "Placeholder";
  wide.nodes[2].inputs.clear();
  wide.nodes[2].attrs = {{"T", DType::f32}, {"shape", Shape{3}}};
  CHECK(error_of(wide).find("enters with shape [2] but is of shape [3]") != std::string::npos);
  wide.nodes[2].attrs = {{"T", DType::i32}, {"shape", Shape{2}}};
  wide.nodes[3].attrs["T"] = DType::i32;
  CHECK(error_of(wide).find("enters as f32 but is i32") != std::string::npos);

  GraphDef endless = g.def();
  endless.nodes[1].inputs[0] = endless.nodes[1].inputs[1];
  CHECK(error_of(endless).find("every input is a back edge") != std::string::npos);
}

TEST_CASE("a few bytes cannot ask for gigabytes") {
  GraphBuilder g(sample::ops());
  Output x = placeholder(g, "x", {2});
  for (int i = 0; i < 600; ++i) g.add({.op = "Split", .inputs = {x}, .attrs = {{"N", 1}}});
  GraphDef graph = g.def();
  for (NodeDef& node : graph.nodes)
    if (node.op == "Split") node.attrs["N"] = std::int64_t{65'535};
  CHECK(error_of(graph).find("with the outputs that they ask for") != std::string::npos);
  graph.nodes.resize(21);  // 1.3 million outputs, of 20 nodes
  CHECK(error_of(graph).find("with the outputs that they ask for") != std::string::npos);
  graph.nodes.resize(2);
  CHECK(import_graph(graph, sample::ops()).ok());
  for (std::int64_t n : {std::int64_t{65'536}, std::numeric_limits<std::int64_t>::max(),
                         std::numeric_limits<std::int64_t>::min()}) {
    GraphDef one = g.def();
    one.nodes[1].attrs["N"] = n;
    CHECK(error_of(one).find("list of") != std::string::npos);
  }
}

TEST_CASE("a graph that grows by pieces is the one that came whole") {
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    CAPTURE(seed);
    Random random(seed);
    const GraphDef given = random_graph(random);
    auto loop = std::find_if(given.nodes.begin(), given.nodes.end(),
                             [](const NodeDef& n) { return n.op == "Merge"; });
    const std::size_t cut_before = std::size_t(loop - given.nodes.begin());
    const GraphDef whole = value_or_throw(import_graph(given, sample::ops()));
    GraphImport import(sample::ops(), given.seed);
    for (std::size_t at = 0; at < given.nodes.size();) {
      std::size_t next = at + 1 + random.below(4);
      if (next > cut_before) next = given.nodes.size();  // a loop comes in one piece
      std::vector<NodeDef> piece(given.nodes.begin() + std::ptrdiff_t(at),
                                 given.nodes.begin() + std::ptrdiff_t(next));
      auto broken = piece;
      broken.back().op = "Sqare";
      CHECK_FALSE(import.extend(broken).ok());
      broken = piece;
      if (at > 0) {
        broken.front().name = given.nodes[random.below(at)].name;
        CHECK_FALSE(import.extend(broken).ok());
      }
      CHECK(import.graph().nodes.size() == at);  // as it was
      Status status = import.extend(piece);
      REQUIRE_MESSAGE(status.ok(), status.text());
      at = next;
    }
    CHECK(import.in_order());
    REQUIRE(import.graph().nodes.size() == whole.nodes.size());
    for (std::size_t i = 0; i < whole.nodes.size(); ++i)
      CHECK(same(import.graph().nodes[i], whole.nodes[i]));
  }
}

Attr random_attr(Random& random) {
  auto number = [&] {
    return std::int64_t(random() >> random.below(64)) * (random.below(2) ? 1 : -1);
  };
  PartialShape odd = PartialShape::unknown_of_rank(1);
  odd.set_dim(0, number());
  switch (random.below(10)) {
    case 0:
      return number();
    case 1:
      return std::numeric_limits<double>::quiet_NaN();
    case 2:
      return random.below(2) == 0;
    case 3:
      return std::string(random.below(20), char(random()));
    case 4:
      return DType(random.below(30));
    case 5:
      return odd;
    case 6:
      return Tensor();
    case 7:
      return Tensor(DType::f32, Shape{1 << 20}, Buffer());  // says more than it holds
    case 8:
      return std::vector<DType>(random.below(4), DType(random.below(30)));
    default:
      return std::vector<std::int64_t>(random.below(4), number());
  }
}

void mutate(GraphDef& graph, Random& random) {
  if (graph.nodes.empty()) return;
  const std::size_t nodes = graph.nodes.size();
  NodeDef& node = graph.nodes[random.below(nodes)];
  const NodeDef& other = graph.nodes[random.below(nodes)];
  auto id = [&] { return NodeId(random.below(8) ? random.below(nodes + 1) : random()); };
  auto any_attr = [&]() -> Attr* {
    if (node.attrs.empty()) return nullptr;
    return &std::next(node.attrs.begin(), std::ptrdiff_t(random.below(node.attrs.size())))->second;
  };
  switch (random.below(14)) {
    case 0:
      node.name = random.below(2) ? other.name : std::string(1, char(random()));
      break;
    case 1:
      node.op = other.op;
      break;
    case 2:
      if (!node.inputs.empty()) node.inputs[random.below(node.inputs.size())].node = id();
      break;
    case 3:
      if (!node.inputs.empty())
        node.inputs[random.below(node.inputs.size())].index = std::uint32_t(random.below(4));
      break;
    case 4:
      node.inputs.push_back({id(), 0});
      break;
    case 5:
      node.inputs.clear();
      break;
    case 6:
      node.control.push_back(id());
      break;
    case 7:
      if (Attr* a = any_attr()) *a = random_attr(random);
      break;
    case 8:
      if (!node.attrs.empty()) node.attrs.erase(node.attrs.begin());
      break;
    case 9:
      node.attrs[random.below(2) ? "N" : "zz"] = random_attr(random);
      break;
    case 10:
      node.device = std::string(random.below(2) ? "/cpu:" : "/") + char(random());
      break;
    case 11:
      node.colocate.push_back(other.name);
      break;
    case 12:
      std::swap(graph.nodes[random.below(nodes)], node);
      break;
    default:
      graph.nodes.erase(graph.nodes.begin() + std::ptrdiff_t(random.below(nodes)));
  }
}

// Nodes rebuilt one by one by a builder: the slow definition of a good graph.
void check_as_built(const GraphDef& graph) {
  GraphBuilder g(sample::ops(), graph.seed);
  std::vector<std::pair<NodeId, int>> loops;
  for (NodeId id = 0; id < graph.nodes.size(); ++id) {
    const NodeDef& node = graph.nodes[id];
    NodeSpec spec{.op = node.op,
                  .attrs = node.attrs,
                  .name = node.name,
                  .device = node.device,
                  .colocate = node.colocate,
                  .site = node.site};
    Output entry;
    for (std::size_t i = node.inputs.size(); i-- > 0;)
      if (node.inputs[i].node < id) entry = Output(&g, node.inputs[i]);
    for (std::size_t i = 0; i < node.inputs.size(); ++i) {
      bool back = sample::ops().find(graph.nodes[node.inputs[i].node].op)->def.role ==
                      Role::next_iteration &&
                  node.op == "Merge";
      if (back) loops.emplace_back(id, int(i));
      if (back)
        entry = Output(&g, *std::find_if(node.inputs.begin(), node.inputs.end(), [&](Port p) {
          return graph.nodes[p.node].op != "NextIteration";
        }));
      spec.inputs.push_back(back ? entry : Output(&g, node.inputs[i]));
    }
    for (NodeId c : node.control) spec.control.emplace_back(&g, c);
    g.add(std::move(spec));
  }
  for (auto [id, i] : loops)
    throw_if_error(g.close_loop(id, i, Output(&g, graph.nodes[id].inputs[std::size_t(i)])));
  CHECK(same(g.def(), graph));
}

void run_mutations(std::uint64_t first, std::uint64_t last) {
  int good = 0, bad = 0;
  for (std::uint64_t seed = first; seed <= last; ++seed) {
    CAPTURE(seed);
    Random random(seed);
    GraphDef graph = random_graph(random);
    for (std::uint64_t n = 1 + random.below(4); n-- > 0;) mutate(graph, random);
    auto imported = import_graph(graph, sample::ops());
    if (!imported.ok()) {
      ++bad;
      CHECK_FALSE(imported.status().message().empty());
      CHECK(imported.status().text().find('\n') == std::string::npos);
      continue;
    }
    ++good;
    const auto of_session = [](const NodeDef& node) { return node.name.starts_with('.'); };
    if (std::any_of(imported->nodes.begin(), imported->nodes.end(), of_session))
      CHECK_THROWS_AS(check_as_built(*imported), Error);
    else
      check_as_built(*imported);
    auto again = import_graph(*imported, sample::ops());
    REQUIRE(again.ok());
    CHECK(same(*again, *imported));
  }
  CHECK(good > 0);
  CHECK(bad > 0);
  MESSAGE("imported " << good << ", refused " << bad);
}

TEST_CASE("a mutated graph is refused or is what a builder makes") { run_mutations(1, 3'000); }

TEST_CASE("[slow] many mutated graphs are refused or are what a builder makes") {
  run_mutations(10'000, 300'000);
}

}  // namespace
}  // namespace troupe
