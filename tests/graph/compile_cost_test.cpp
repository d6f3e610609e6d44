// What compiling costs grows with the graph, not with its square.
#include <doctest/doctest.h>

#include "graph/graph_index.hpp"
#include "tests/graph/allocated.hpp"
#include "tests/graph/toy.hpp"

using namespace troupe;
using namespace troupe::toy;

namespace {

std::string numbered(const char* name, int i) { return name + std::to_string(i); }

Maker chain(int n) {
  Maker g;
  Port x = g.add("Placeholder", "x"), y = x;
  for (int i = 0; i < n; ++i) y = g.add("Add", numbered("add", i), {y, x});
  g.add("Neg", "end", {y});
  return g;
}

// Each variable is read, written, and read again afterwards.
Maker variables(int n) {
  Maker g;
  Port x = g.add("Placeholder", "x");
  std::vector<Port> values;
  for (int i = 0; i < n / 4; ++i) {
    Port v = g.variable(numbered("v", i));
    Port before = g.add("Read", numbered("before", i), {v});
    Port sum = g.add("Add", numbered("sum", i), {before, x});
    NodeId write = g.node("Assign", numbered("write", i), {v, sum});
    values.push_back(g.add("Read", numbered("after", i), {v}, {.control = {write}}));
  }
  g.add("AddN", "end", values);
  return g;
}

// As many constants as variables, on two devices.
Maker spread(int n) {
  Maker g;
  Port x = g.add("Placeholder", "x"), y = x;
  for (int i = 0; i < n / 2; ++i) {
    Port c = g.constant(numbered("c", i), float(i));
    y = g.add("Add", numbered("add", i), {y, c}, {.device = i % 100 < 50 ? kCpu : kCpu1});
  }
  g.add("Neg", "end", {y});
  return g;
}

std::uint64_t bytes_to_compile(const Maker& g) {
  const std::uint64_t before = test::allocated_bytes();
  auto compiled = compile(g.def, request({"end"}, {}, {"x"}), target({kCpu, kCpu1}));
  const std::uint64_t after = test::allocated_bytes();
  REQUIRE_MESSAGE(compiled.ok(), compiled.status().text());
  return after - before;
}

}  // namespace

TEST_CASE("a graph twice as large takes twice as much to compile") {
  for (auto* make : {chain, variables, spread}) {
    const std::uint64_t small = bytes_to_compile(make(4000));
    const std::uint64_t large = bytes_to_compile(make(8000));
    CAPTURE(small);
    CHECK(double(large) < 2.2 * double(small));
  }
}

TEST_CASE("compiling copies a node twice, not once a pass") {
  const std::uint64_t before = bytes_to_compile(chain(1000));
  const std::uint64_t bytes_a_node = (bytes_to_compile(chain(5000)) - before) / 4000;
  CAPTURE(bytes_a_node);
  CHECK(bytes_a_node < 5000);
}

TEST_CASE("a request costs what it needs of a graph, not what there is beside that") {
  const auto bytes_beside = [](int n) {
    Maker g = chain(n);
    g.add("Neg", "apart", {g.constant("c", 1.0f)});
    GraphIndex index;
    const Target here = target({kCpu, kCpu1});
    REQUIRE(compile(g.def, index, request({"apart"}), here).ok());  // looks at the whole graph
    g.add("Neg", "new", {g.constant("d", 2.0f)});
    const std::uint64_t before = test::allocated_bytes();
    REQUIRE(compile(g.def, index, request({"new"}), here).ok());
    return test::allocated_bytes() - before;
  };
  const std::uint64_t small = bytes_beside(100), large = bytes_beside(10'000);
  CAPTURE(small);
  CAPTURE(large);
  CHECK(large < small + 2000);  // but for the index, which grows by the two nodes at most twofold
}
