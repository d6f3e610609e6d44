#include "graph/graph_marks.hpp"

#include <doctest/doctest.h>

#include "graph/builder.hpp"
#include "tests/graph/sample_ops.hpp"
#include "tests/graph/toy.hpp"

using namespace troupe;
using namespace troupe::toy;

namespace {

// So many constants, of which one may be another.
GraphDef constants(int n, int other = -1) {
  Maker g;
  for (int i = 0; i < n; ++i) g.constant("c" + std::to_string(i), i == other ? -1 : i);
  return g.def;
}

}  // namespace

TEST_CASE("a graph that is built again is known, as far as both go") {
  for (int n : {1, 5, 63, 64, 65, 1000}) {
    GraphMarks marks;
    const std::vector<GraphMark> all = marks.of(constants(n));
    CHECK(all.size() <= 2 * 64);
    CHECK(all.back().nodes == std::uint64_t(n));
    CHECK(marks.of(constants(n)) == all);
    for (int m : {n / 2, n - 1, n, n + 1, 3 * n}) CHECK(check_marks(constants(m), all).ok());
    for (int other : {0, n / 3, n - 1}) {
      const Status status = check_marks(constants(n, other), all);
      CHECK(status.code() == Code::failed_precondition);
      CHECK(check_marks(constants(other), all).ok());
    }
  }
  // One of 1000: the nodes among which it is are some 15.
  GraphMarks marks;
  const Status status = check_marks(constants(1000, 700), marks.of(constants(1000)));
  CHECK_MESSAGE(status.message().find("nodes 690 to 704") != std::string::npos, status.text());
  CHECK_MESSAGE(status.message().find("'c690'") != std::string::npos, status.text());
}

TEST_CASE("marks of a graph that grows often stay few, and those of its beginning stay") {
  GraphMarks marks;
  for (int n = 1; n < 1500; n += 5) marks.of(constants(n));
  const std::vector<GraphMark> all = marks.of(constants(1500));
  CHECK(all.size() <= 256 + 64);
  CHECK(all.front().nodes == 1);
  CHECK(all.back().nodes == 1500);
  CHECK(check_marks(constants(1500), all).ok());
  CHECK(check_marks(constants(1500, 1499), all).code() == Code::failed_precondition);
}

TEST_CASE("functions belong to a graph's marks") {
  GraphDef g = constants(3);
  g.functions.push_back({});
  g.functions.back().name = "f";
  GraphMarks marks;
  const std::vector<GraphMark> all = marks.of(g);
  CHECK(check_marks(g, all).ok());
  g.functions.back().name = "h";
  CHECK(check_marks(g, all).code() == Code::failed_precondition);
}

TEST_CASE("a function that comes before the nodes that call it is hashed once") {
  GraphDef g = constants(3);
  GraphMarks marks;
  marks.of(g);
  g.functions.push_back({});
  g.functions.back().name = "f";
  marks.of(g);  // without new nodes
  const GraphDef more = constants(5);
  g.nodes = more.nodes;
  const std::vector<GraphMark> all = marks.of(g);
  CHECK(all.back().functions == 1);
  CHECK(check_marks(g, all).ok());
  GraphMarks anew;
  CHECK(anew.of(g).back() == all.back());
  g.functions.back().name = "h";
  CHECK(check_marks(g, all).code() == Code::failed_precondition);
}

TEST_CASE("a graph on other devices has the same marks") {
  const GraphDef g = constants(3);
  GraphDef other = g;
  other.nodes[1].device = "/cpu:1";
  other.nodes[2].colocate = {"c1"};
  GraphMarks marks, others;
  CHECK(marks.of(g) == others.of(other));
  CHECK(check_marks(other, marks.of(g)).ok());
}

TEST_CASE("marks that anybody made are refused or harmless") {
  const GraphDef g = constants(3);
  for (const std::vector<GraphMark>& marks : std::vector<std::vector<GraphMark>>{
           {{0, 0, 1}}, {{2, 0, 0}, {2, 0, 0}}, {{3, 0, 0}, {1, 0, 0}}, {{1, 0, 7}}})
    CHECK_FALSE(check_marks(g, marks).ok());
  CHECK(check_marks(g, {}).ok());
  CHECK(check_marks(GraphDef{}, {{1, 0, 7}, {~std::uint64_t{0}, ~std::uint64_t{0}, 7}}).ok());
}

TEST_CASE(
    "a graph is known whether a loop of a client's own was closed before or after the marks") {
  const auto graph = [](bool closed) {
    Maker g;
    const Port x = g.constant("x", 1), n = g.constant("n", 3);
    const Port enter = g.add("Enter", "enter", {x});
    const Port merge = g.add("Merge", "merge", {enter, enter});
    const Port next = g.add("NextIteration", "next", {merge});
    const Port branches = g.add("Merge", "branches", {x, n});
    if (closed) g.def.nodes[merge.node].inputs[1] = next;
    g.add("Neg", "last", {branches});
    return g.def;
  };
  for (const bool first : {false, true}) {
    GraphMarks marks;
    const std::vector<GraphMark> all = marks.of(graph(first));
    CHECK(check_marks(graph(first), all).ok());
    CHECK(check_marks(graph(!first), all).ok());
    GraphDef other = graph(first);
    std::swap(other.nodes[5].inputs[0], other.nodes[5].inputs[1]);
    CHECK(check_marks(other, all).code() == Code::failed_precondition);
    other = graph(first);
    other.nodes[3].inputs[0] = other.nodes[3].inputs[1] = {1, 0};
    CHECK(check_marks(other, all).code() == Code::failed_precondition);
  }
}
