#include "serialization/graph_io.hpp"

#include <doctest/doctest.h>

#include <filesystem>
#include <random>

#include "tests/serialization/faulty_files.hpp"
#include "tests/serialization/random_values.hpp"
#include "tests/serialization/temporary.hpp"

using namespace troupe;
using namespace troupe::testing;

TEST_CASE("a graph survives its file") {
  std::uint64_t seed = std::random_device{}();
  INFO("seed " << seed);
  Values v{Random(seed)};
  TemporaryDir dir;
  for (int i = 0; i < 5; ++i) {
    GraphDef graph = v.graph();
    REQUIRE(write_graph(dir.path("g"), graph).ok());
    auto back = read_graph(dir.path("g"));
    REQUIRE(back.ok());
    CHECK(same(*back, graph));
  }
  CHECK(dir.names() == std::vector<std::string>{"g"});
}

TEST_CASE("a graph is read where a link leads, as it is written there") {
  TemporaryDir dir;
  GraphDef graph;
  graph.seed = 5;
  std::filesystem::create_symlink("there", dir.path("link"));
  REQUIRE(write_graph(dir.path("link"), graph).ok());
  CHECK(std::filesystem::is_symlink(dir.path("link")));
  const auto read = read_graph(dir.path("link"));
  REQUIRE_MESSAGE(read.ok(), read.status().text());
  CHECK(read->seed == 5);
}

TEST_CASE("a graph that is not there is not_found") {
  TemporaryDir dir;
  CHECK(read_graph(dir.path("nothing")).status().code() == Code::not_found);
}

TEST_CASE("hostile graph files are data_loss or a graph") {
  std::uint64_t seed = std::random_device{}();
  INFO("seed " << seed);
  Values v{Random(seed)};
  FaultyFiles files(seed);
  for (int i = 0; i < 5000; ++i) {
    REQUIRE(write_graph("g", v.graph(), files).ok());
    auto& bytes = files.bytes("g");
    bytes[v.below(bytes.size())] ^= std::byte(1 << v.below(8));
    if (v.flag()) bytes.resize(v.below(bytes.size()));
    auto back = read_graph("g", files);
    if (!back.ok()) CHECK(back.status().code() == Code::data_loss);
  }
}

TEST_CASE("the hash of a graph sees what is computed, not where it was written") {
  GraphDef a;
  a.nodes.push_back({.name = "x", .op = "Const", .attrs = {{"value", Attr(1)}}});
  a.nodes[0].site = {"a.cpp", 1};
  GraphDef b = a;
  b.nodes[0].site = {"b.cpp", 2};
  CHECK(graph_sha256(a) == graph_sha256(b));
  CHECK(graph_sha256(a).size() == 64);
  b.nodes[0].attrs["value"] = Attr(2);
  CHECK(graph_sha256(a) != graph_sha256(b));
  b = a;
  b.seed = 1;
  CHECK(graph_sha256(a) != graph_sha256(b));
}

TEST_CASE("a file from before there were functions is read as it was written") {
  Values v{Random(7)};
  FaultyFiles files(7);
  GraphDef graph = v.graph();
  while (graph.nodes.empty()) graph = v.graph();
  graph.functions.clear();
  REQUIRE(write_graph("g", graph, files).ok());
  // The root is the first word behind the table of segments, four bytes for each and for their
  // number; its last two bytes say how many lists a Graph has. It had one less, and its nodes came
  // first then, too.
  auto& bytes = files.bytes("g");
  const std::size_t segments = 1 + std::size_t(bytes[0]);
  const std::size_t root = (4 * (1 + segments) + 7) / 8 * 8;
  REQUIRE(bytes[root + 6] == std::byte{2});
  bytes[root + 6] = std::byte{1};
  auto back = read_graph("g", files);
  REQUIRE_MESSAGE(back.ok(), back.status().text());
  CHECK(same(*back, graph));
}

TEST_CASE("the hash of a graph sees what its functions compute, not where they were written") {
  GraphDef a;
  a.functions.push_back(
      {.name = "f", .nodes = {{.name = "x", .op = "Const"}}, .site = {"a.cpp", 1}});
  GraphDef b = a;
  b.functions[0].site = {"b.cpp", 2};
  b.functions[0].nodes[0].site = {"b.cpp", 3};
  CHECK(graph_sha256(a) == graph_sha256(b));
  b.functions[0].nodes[0].op = "Neg";
  CHECK(graph_sha256(a) != graph_sha256(b));
  b = a;
  b.functions.clear();
  CHECK(graph_sha256(a) != graph_sha256(b));
}
