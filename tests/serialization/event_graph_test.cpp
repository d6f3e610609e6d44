#include "serialization/event_graph.hpp"

#include <doctest/doctest.h>

#include <limits>
#include <map>
#include <protozero/pbf_reader.hpp>

#include "tests/contains.hpp"

using namespace troupe;
using troupe::test::contains;

namespace {

using protozero::pbf_reader;

struct ReadNode {
  std::string op, device;
  std::vector<std::string> inputs;
  std::map<std::string, std::string> attrs;  // serialized
};

std::pair<std::string, ReadNode> parse_node(pbf_reader in) {
  std::string name;
  ReadNode node;
  while (in.next()) switch (in.tag()) {
      case 1:
        name = in.get_string();
        break;
      case 2:
        node.op = in.get_string();
        break;
      case 3:
        node.inputs.push_back(in.get_string());
        break;
      case 4:
        node.device = in.get_string();
        break;
      default: {
        std::string key, value;
        for (pbf_reader entry = in.get_message(); entry.next();) {
          std::string& part = entry.tag() == 1 ? key : value;
          part = entry.get_bytes();
        }
        node.attrs[key] = value;
      }
    }
  return {name, node};
}

std::map<std::string, ReadNode> nodes_of(const std::string& graph) {
  std::map<std::string, ReadNode> out;
  for (pbf_reader in(graph); in.next(1);) out.insert(parse_node(in.get_message()));
  return out;
}

// The dimensions of list(shape) attributes, a rank that is not known as {-2}.
std::vector<std::vector<std::int64_t>> shapes_of(const std::string& attr) {
  std::vector<std::vector<std::int64_t>> out;
  pbf_reader value(attr);
  REQUIRE(value.next(1));
  for (pbf_reader list = value.get_message(); list.next(7);) {
    auto& dims = out.emplace_back();
    for (pbf_reader shape = list.get_message(); shape.next();) {
      if (shape.tag() == 3) {
        dims.push_back(shape.get_bool() ? -2 : 0);
        continue;
      }
      pbf_reader dim = shape.get_message();
      REQUIRE(dim.next(1));
      dims.push_back(dim.get_int64());
    }
  }
  return out;
}

NodeDef graph_node(std::string name, std::string op) {
  NodeDef node;
  node.name = std::move(name);
  node.op = std::move(op);
  return node;
}

// What a RunMetadata says: by device, node and its begin and length in ns.
struct ReadSpan {
  std::string name;
  std::int64_t begin_ns = 0, length_ns = 0, end_us = 0;
};
std::map<std::string, std::vector<ReadSpan>> parse_run(const std::string& metadata) {
  std::map<std::string, std::vector<ReadSpan>> out;
  pbf_reader in(metadata);
  REQUIRE(in.next(1));
  for (pbf_reader stats = in.get_message(); stats.next(1);) {
    std::string device;
    std::vector<ReadSpan> spans;
    for (pbf_reader one = stats.get_message(); one.next();) {
      if (one.tag() == 1) {
        device = one.get_string();
        continue;
      }
      ReadSpan& span = spans.emplace_back();
      for (pbf_reader node = one.get_message(); node.next();)
        if (node.tag() == 1)
          span.name = node.get_string();
        else if (node.tag() == 5)
          span.end_us = node.get_int64();
        else if (node.tag() == 13)
          span.begin_ns = node.get_int64();
        else if (node.tag() == 16)
          span.length_ns = node.get_int64();
        else
          node.skip();
    }
    out[device] = spans;
  }
  return out;
}

}  // namespace

TEST_CASE("a graph has its nodes with ops, inputs, devices, attributes and shapes") {
  GraphDef graph;
  NodeDef x = graph_node("net/x", "Placeholder");
  x.attrs = {{"T", DType::f32}, {"shape", PartialShape{-1, 3}}};
  x.out_types = {DType::f32};
  x.out_shapes = {PartialShape{-1, 3}};
  NodeDef split = graph_node("net/split", "Split");
  split.inputs = {{0, 0}};
  split.control = {0};
  split.device = "/job:worker/task:1/cpu:0";
  split.colocate = {"net/x"};
  split.attrs = {{"N", std::int64_t{2}},
                 {"axes", std::vector<std::int64_t>{1, 2}},
                 {"small", Tensor::scalar(2.5f)},
                 {"large", Tensor::zeros(DType::f64, {1000}).value()},
                 {"text", Tensor::scalar(std::string_view("words"))}};
  split.out_types = {DType::f32, DType::f32};
  split.out_shapes = {PartialShape{-1, 1}, PartialShape()};
  NodeDef sum = graph_node("sum", "Add");
  sum.inputs = {{1, 0}, {1, 1}};
  graph.nodes = {x, split, sum};
  const auto nodes = nodes_of(tensorboard_graph(graph, {{"sum", "/job:worker/task:0/cpu:0"}}));
  REQUIRE(nodes.size() == 3);
  const ReadNode& read = nodes.at("net/split");
  CHECK(read.op == "Split");
  CHECK(read.inputs == std::vector<std::string>{"net/x", "^net/x"});
  CHECK(read.device == "/job:worker/task:1/cpu:0");
  CHECK(contains(read.attrs.at("_class"), "loc:@net/x"));
  CHECK(shapes_of(read.attrs.at("_output_shapes")) ==
        std::vector<std::vector<std::int64_t>>{{-1, 1}, {-2}});
  CHECK(read.attrs.at("small").size() > 4);
  CHECK(read.attrs.at("large").size() < 20);
  CHECK(nodes.at("net/x").attrs.at("T") == std::string("\x30\x01", 2));
  CHECK(nodes.at("sum").inputs == std::vector<std::string>{"net/split", "net/split:1"});
  CHECK(nodes.at("sum").device == "/job:worker/task:0/cpu:0");
}

TEST_CASE("functions of a graph are its library") {
  GraphDef graph;
  FunctionDef& body = graph.functions.emplace_back();
  body.name = "body";
  NodeDef argument = graph_node("a", "Argument"), twice = graph_node("twice", "Add");
  twice.inputs = {{0, 0}, {0, 0}};
  body.nodes = {argument, twice};
  const std::string bytes = tensorboard_graph(graph);
  pbf_reader in(bytes);
  REQUIRE(in.next(2));
  pbf_reader library = in.get_message();
  REQUIRE(library.next(1));
  std::map<std::string, ReadNode> nodes;
  std::string name;
  for (pbf_reader function = library.get_message(); function.next();)
    if (function.tag() == 1) {
      pbf_reader signature = function.get_message();
      REQUIRE(signature.next(1));
      name = signature.get_string();
    } else {
      nodes.insert(parse_node(function.get_message()));
    }
  CHECK(name == "body");
  CHECK(nodes.at("twice").inputs == std::vector<std::string>{"a:out:0", "a:out:0"});
}

TEST_CASE("a graph of any bytes and numbers is written as UTF-8") {
  GraphDef graph;
  NodeDef odd = graph_node("\xff", "\xff");
  odd.inputs = {{77, 3}};
  odd.control = {99};
  odd.device = "\xff";
  odd.attrs = {{"\xff", "\xff"}, {"tensor", Tensor()}};
  graph.nodes = {odd};
  const auto nodes = nodes_of(tensorboard_graph(graph));
  REQUIRE(nodes.size() == 1);
  CHECK(nodes.begin()->first == "\xEF\xBF\xBD");
  CHECK(nodes_of(tensorboard_graph({})).empty());
}

TEST_CASE("run metadata has for each device the nodes of a run, by the master's clock") {
  Timeline timeline;
  ProcessTimeline master{.process = 0, .name = "master"};
  ProcessTimeline worker{.process = 1, .name = "worker 0"};
  worker.clock = ClockOffset::Estimate{.offset_ns = 1'000, .error_ns = 1};
  worker.tracks = {{"steps on /job:worker/task:0/cpu:0", {}}, {"lane 0", {}}};
  const std::int64_t most = std::numeric_limits<std::int64_t>::max();
  worker.tracks[1].spans = {
      {.name = "b", .run = 4, .begin_ns = 9'000, .end_ns = 9'100},
      {.name = "a", .run = 4, .begin_ns = 3'000, .end_ns = 8'000},
      {.name = "\xff", .run = 5, .begin_ns = 10'000, .end_ns = 12'000},
      {.kind = Span::Kind::burst, .name = "burst", .run = 4, .begin_ns = 1, .end_ns = 2},
      {.name = "of no run", .begin_ns = 1, .end_ns = 2},
      {.name = "backwards", .run = 4, .begin_ns = 5, .end_ns = 2},
      {.name = "beyond", .run = 4, .begin_ns = most, .end_ns = most},
      {.name = "before", .run = 4, .begin_ns = -most, .end_ns = most}};
  ProcessTimeline two{.process = 2, .name = "worker 1"};
  two.tracks = {{"steps on /job:worker/task:1/cpu:0", {}},
                {"steps on /job:worker/task:1/fake:0", {}}};
  two.tracks[0].spans = {{.name = "c/replica_1", .run = 4, .begin_ns = 0, .end_ns = 1}};
  timeline.processes = {master, worker, two};
  const auto runs = tensorboard_runs(timeline, 1'000'000);
  REQUIRE(runs.size() == 2);
  CHECK(runs[0].run == 4);
  CHECK(runs[1].run == 5);
  const auto first = parse_run(runs[0].metadata);
  REQUIRE(first.size() == 2);
  const auto& spans = first.at("/job:worker/task:0/cpu:0");
  REQUIRE(spans.size() == 2);
  CHECK(spans[0].name == "a");
  CHECK(spans[0].begin_ns == 1'002'000);
  CHECK(spans[0].length_ns == 5'000);
  CHECK(spans[0].end_us == 5);
  CHECK(spans[1].name == "b");
  CHECK(spans[1].end_us == 1);
  CHECK(first.at("worker 1").at(0).name == "c");
  CHECK(parse_run(runs[1].metadata).begin()->second.at(0).name == "\xEF\xBF\xBD");
  CHECK(tensorboard_runs({}, most).empty());
  REQUIRE(tensorboard_runs(timeline, 0, "b").size() == 1);
  CHECK(tensorboard_runs(timeline, 0, "b")[0].run == 4);
  CHECK(tensorboard_runs(timeline, 0, "none").empty());
}
