#include "serialization/graph_io.hpp"

#include <doctest/doctest.h>

#include <filesystem>
#include <random>

#include "tests/contains.hpp"
#include "tests/serialization/faulty_files.hpp"
#include "tests/serialization/random_values.hpp"
#include "tests/serialization/temporary.hpp"

using namespace troupe;
using namespace troupe::testing;
using troupe::test::contains;

namespace {

// Makes the file of a graph that of a version without checksums.
void remove_checksum(std::vector<std::byte>& file) {
  file.erase(file.begin(), file.begin() + std::min<std::ptrdiff_t>(24, std::ssize(file)));
}

}  // namespace

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

TEST_CASE("hostile graph files are data_loss, those without a checksum that or a graph") {
  std::uint64_t seed = std::random_device{}();
  INFO("seed " << seed);
  Values v{Random(seed)};
  FaultyFiles files(seed);
  for (int i = 0; i < 5000; ++i) {
    REQUIRE(write_graph("g", v.graph(), files).ok());
    auto& bytes = files.bytes("g");
    const bool old = v.flag();
    if (old) remove_checksum(bytes);
    bytes[v.below(bytes.size())] ^= std::byte(1 << v.below(8));
    if (v.flag()) bytes.resize(v.below(bytes.size()));
    auto back = read_graph("g", files);
    if (!old) REQUIRE(!back.ok());
    if (!back.ok()) CHECK(back.status().code() == Code::data_loss);
  }
}

TEST_CASE("every flipped byte of a graph file is found, and said of which file") {
  GraphDef graph;
  graph.nodes.push_back({.name = "x", .op = "Const", .attrs = {{"value", Attr(1)}}});
  graph.nodes.push_back({.name = "y", .op = "Neg", .inputs = {{0, 0}}});
  FaultyFiles files(1);
  REQUIRE(write_graph("net.graph", graph, files).ok());
  const std::vector<std::byte> good = files.bytes("net.graph");
  std::size_t other_graphs = 0;  // that a file without a checksum would be taken for
  for (std::size_t at = 0; at < good.size(); ++at)
    for (const unsigned flip : {0x01u, 0x80u, 0xffu, 0x20u}) {
      CAPTURE(at);
      CAPTURE(flip);
      auto& bytes = files.bytes("net.graph");
      bytes = good;
      bytes[at] ^= std::byte(flip);
      const Status status = read_graph("net.graph", files).status();
      CHECK(status.code() == Code::data_loss);
      CHECK_MESSAGE(contains(status.text(), "'net.graph'"), status.text());
      CHECK_MESSAGE(contains(status.text(), "expected"), status.text());
      remove_checksum(bytes);
      const auto old = read_graph("net.graph", files);
      other_graphs += old.ok() && !same(*old, graph);
    }
  CHECK(other_graphs > 100);
  for (std::size_t size = 0; size < good.size(); ++size) {
    files.bytes("net.graph").assign(good.begin(), good.begin() + std::ptrdiff_t(size));
    CHECK(read_graph("net.graph", files).status().code() == Code::data_loss);
  }
  files.bytes("net.graph") = good;
  files.bytes("net.graph").resize(good.size() + 8);
  CHECK(read_graph("net.graph", files).status().code() == Code::data_loss);
}

TEST_CASE("a graph file of before there were checksums is read") {
  FaultyFiles files(1);
  Values v{Random(3)};
  for (int i = 0; i < 100; ++i) {
    const GraphDef graph = v.graph();
    REQUIRE(write_graph("g", graph, files).ok());
    remove_checksum(files.bytes("g"));
    const auto back = read_graph("g", files);
    REQUIRE_MESSAGE(back.ok(), back.status().text());
    CHECK(same(*back, graph));
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
  remove_checksum(bytes);
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
