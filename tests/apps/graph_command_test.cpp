#include <doctest/doctest.h>

#include <set>

#include "tests/apps/command.hpp"

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
