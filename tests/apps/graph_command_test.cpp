#include <doctest/doctest.h>

#include <filesystem>
#include <fstream>
#include <set>

#include "ops/api.hpp"
#include "serialization/graph_io.hpp"
#include "tests/apps/command.hpp"
#include "tests/apps/folder.hpp"

using nlohmann::json;

TEST_CASE("the graph of an example prints after each stage, as text and as DOT") {
  Ended names = troupe_command("graph mnist-softmax --stage stages --output json");
  REQUIRE(names.code == 0);
  auto stages = names.json();
  REQUIRE(stages.is_array());
  CHECK(stages.front() == "built");
  CHECK(stages.back() == "plan");
  for (const json& stage : stages) {
    INFO(stage.get<std::string>());
    std::string with = "graph mnist-softmax --stage " + stage.get<std::string>();
    Ended text = troupe_command(with);
    CHECK(text.code == 0);
    CHECK(contains(text.out, "MatMul"));
    CHECK(contains(text.out, "ApplyMomentum"));
    Ended dot = troupe_command(with + " --format dot");
    CHECK(dot.code == 0);
    CHECK(dot.out.starts_with("digraph"));
  }
}

TEST_CASE("compiling leaves out what the step does not need") {
  std::string built = troupe_command("graph mnist-softmax --stage built").out;
  std::string pruned = troupe_command("graph mnist-softmax --stage prune").out;
  CHECK(contains(built, "ArgMax"));  // of the accuracy, which training does not fetch
  CHECK_FALSE(contains(pruned, "ArgMax"));
}

TEST_CASE("the plan of a convolutional network has its kernels and a bound on its memory") {
  Ended ended = troupe_command("graph mnist-conv --output json");
  REQUIRE(ended.code == 0);
  json plan = ended.json()["plan"];
  REQUIRE(plan["partitions"].size() == 1);
  const json& partition = plan["partitions"][0];
  CHECK(partition["device"] == "/job:worker/task:0/cpu:0");
  std::multiset<std::string> ops;
  for (const json& node : partition["nodes"]) ops.insert(node["op"].get<std::string>());
  CHECK(ops.count("Conv2D") == 2);
  CHECK(ops.count("Conv2DBackpropFilter") == 2);
  CHECK(ops.count("Conv2DBackpropInput") == 1);  // no gradient of the pictures
  CHECK(ops.count("ApplyMomentum") == 8);
  CHECK(partition["fetches"].size() == 1);
  // The activations of the first convolution alone, for a batch of 64.
  CHECK(partition["liveness_bound_bytes"].get<double>() > 64 * 28 * 28 * 32 * 4);
  CHECK(plan["channels"].empty());
  // Every slot that is read is written by a node or a feed, exactly once.
  std::set<int> written;
  for (const json& node : partition["nodes"])
    for (const json& output : node["outputs"])
      CHECK(written.insert(output["slot"].get<int>()).second);
  for (const json& node : partition["nodes"])
    for (const json& slot : node["inputs"]) CHECK(written.contains(slot.get<int>()));
}

TEST_CASE("replicas on two devices meet through channels") {
  Ended ended = troupe_command(
      "graph mnist-softmax --replicas 2 --device /job:worker/task:0/cpu:0 "
      "--device /job:worker/task:1/cpu:0 --output json");
  REQUIRE(ended.code == 0);
  json plan = ended.json()["plan"];
  CHECK(plan["partitions"].size() == 2);
  CHECK_FALSE(plan["channels"].empty());
  for (const json& channel : plan["channels"]) CHECK(channel["from"] != channel["to"]);
}

TEST_CASE("a device that is not fully named is refused") {
  Ended ended = troupe_command("graph mnist-softmax --device CPU:0");
  CHECK(ended.code == 1);
  CHECK(contains(ended.err, "not the full name"));
}

namespace {

// A graph with a function and a second network beside what is asked for.
void write_sample(const std::string& path) {
  troupe::Graph g;
  troupe::Output x = troupe::placeholder<float>(g, {-1, 4}, "x");
  troupe::Output w =
      troupe::variable(g, "w", troupe::Tensor::zeros(troupe::DType::f32, {4, 2}).value());
  troupe::Output y = troupe::matmul(x, w);
  troupe::cond(
      troupe::sum(y) > 0.f, [&] { return y * 2; }, [&] { return y; });
  REQUIRE(troupe::write_graph(path, g.def()).ok());
}

}  // namespace

TEST_CASE("the graph of a file prints as text and as DOT, and after any stage of a step") {
  Folder folder;
  const std::string file = folder.path + "/net.graph";
  write_sample(file);
  Ended text = troupe_command("graph " + file);
  CHECK(text.code == 0);
  CHECK(contains(text.out, "x = Placeholder()"));
  CHECK(contains(text.out, "cond = If("));
  CHECK(contains(text.out, "function cond/then("));
  Ended dot = troupe_command("graph " + file + " --format dot");
  CHECK(dot.code == 0);
  CHECK(dot.out.starts_with("digraph"));
  CHECK(contains(dot.out, "MatMul"));
  json built = troupe_command("graph " + file + " --output json").json();
  CHECK(built["file"] == file);
  CHECK(built["stage"] == "built");
  const std::string step = "graph " + file + " --fetch MatMul --feed x";
  CHECK(contains(troupe_command(step + " --stage prune").out, "MatMul"));
  CHECK_FALSE(contains(troupe_command(step + " --stage prune").out, "cond = If("));
  json plan = troupe_command(step + " --output json").json()["plan"];
  REQUIRE(plan["partitions"].size() == 1);
  CHECK(plan["partitions"][0]["fetches"].size() == 1);
  CHECK(troupe_command(step + " --stage stages --output json").json().back() == "plan");
}

TEST_CASE("a graph with ops that this build does not know prints all the same") {
  Folder folder;
  troupe::GraphDef g;
  g.nodes.push_back({.name = "a", .op = "SomebodysOwn"});
  REQUIRE(troupe::write_graph(folder.path + "/g", g).ok());
  CHECK(contains(troupe_command("graph " + folder.path + "/g").out, "a = SomebodysOwn()"));
  Ended compiled = troupe_command("graph " + folder.path + "/g --fetch a");
  CHECK(compiled.code == 1);
  CHECK(contains(compiled.err, "SomebodysOwn"));
}

TEST_CASE("files that are no graphs, and steps that a graph does not have, are errors") {
  Folder folder;
  const std::string file = folder.path + "/net.graph";
  auto refused = [&](const std::string& arguments, int code, const std::string& what) {
    Ended ended = troupe_command("graph " + arguments);
    CAPTURE(arguments);
    CAPTURE(ended.err);
    CHECK(ended.code == code);
    CHECK(contains(ended.err, what));
    CHECK(ended.out.empty());
  };
  refused(file, 1, file);  // not there
  refused(folder.path, 1, folder.path);
  std::ofstream(file) << "digraph {}";
  refused(file, 1, "is no graph");
  std::ofstream(file).flush();
  refused(file, 1, "is no graph");
  write_sample(file);
  std::filesystem::resize_file(file, std::filesystem::file_size(file) / 2);
  refused(file, 1, "is damaged");
  write_sample(file);
  refused(file + " --stage plan", 2, "--fetch or --target");
  refused(file + " --feed x", 2, "--fetch or --target");
  refused(file + " --fetch MatMuk --feed x", 1, "MatMuk");
  refused(file + " --fetch MatMul:x", 1, "MatMul:x");
  refused("mnist-mlp --fetch x", 2, "the graph of a file");
  refused("mnist-mpl", 2, "did you mean mnist-mlp");
}
