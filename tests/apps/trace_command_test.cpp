// `troupe train --trace`, as a user meets it. tests/accept/house_7.sh checks the picture itself.
#include <doctest/doctest.h>

#include <filesystem>
#include <map>
#include <set>

#include "tests/apps/command.hpp"
#include "tests/apps/folder.hpp"

namespace {

const std::string kTrain = "train mnist-softmax --examples 512 --quiet --output json ";

nlohmann::json read_trace(const std::string& path) {
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  return nlohmann::json::parse(text.str(), nullptr, false);
}

}  // namespace

TEST_CASE("a trace shows all processes and changes nothing else") {
  Folder folder;
  const std::string job = kTrain + "--steps 8 --replicas 2 --cluster local:2 ";
  const std::string file = folder.path + "/t.json";
  Ended traced = troupe_command(job + "--trace-steps 4 --trace " + file);
  REQUIRE_MESSAGE(traced.code == 0, traced.err);
  CHECK(traced.json()["trace"] == file);
  CHECK(traced.json()["traced_steps"] == 4);
  CHECK_FALSE(traced.json().contains("trace_error"));
  CHECK(traced.json()["params_sha256"] == troupe_command(job).json()["params_sha256"]);

  const nlohmann::json trace = read_trace(file);
  REQUIRE(trace.is_object());
  std::map<std::string, std::set<int>> pids;  // by category
  std::map<int, std::string> flows;
  for (const auto& e : trace["traceEvents"]) {
    const std::string kind = e["ph"];
    if (kind == "X") pids[e["cat"]].insert(e["pid"].get<int>());
    if (kind == "s" || kind == "f") flows[e["id"]] += kind;
  }
  CHECK(pids["node"] == std::set{2, 3});
  CHECK(pids["wait"].size() >= 2);
  CHECK(pids["send"] == std::set{1, 2, 3});
  CHECK(pids["receive"] == std::set{1, 2, 3});
  CHECK(flows.size() > 20);
  for (const auto& [_, ends] : flows) CHECK((ends == "sf" || ends == "fs"));
  const auto& workers = trace["otherData"]["workers"];
  REQUIRE(workers.size() == 2);
  for (const auto& worker : workers) {
    CHECK(worker["complete"] == true);
    // One machine, one clock.
    CHECK(std::abs(worker["clock_offset_us"].get<double>()) <=
          worker["clock_error_us"].get<double>());
  }
}

TEST_CASE("a run that is shorter than its trace is in it as a whole") {
  Folder folder;
  const std::string file = folder.path + "/t.json";
  auto traced = troupe_command(kTrain + "--steps 5 --trace-steps 50 --trace " + file).json();
  REQUIRE(traced.is_object());
  CHECK(traced["traced_steps"] == 5);
  std::size_t runs = 0;
  const nlohmann::json trace = read_trace(file);
  for (const auto& e : trace["traceEvents"])
    runs += e.value("cat", "") == "run" && e["name"] == "run";
  CHECK(runs == 5);
}

TEST_CASE("a trace file that cannot be written is refused before training, by its name") {
  for (const char* file : {"/no/such/folder/t.json", "/tmp"}) {
    Ended ended = troupe_command(kTrain + "--steps 5 --trace " + file);
    CHECK(ended.code == 1);
    CHECK(contains(ended.json()["error"].get<std::string>(), file));
    CHECK_FALSE(ended.json().contains("steps"));
  }
}

TEST_CASE("a disk that is full when the trace is written costs nothing but the trace") {
  Ended full = troupe_command(kTrain + "--steps 5 --trace /dev/full");
  CHECK(full.code == 0);
  CHECK(full.json()["steps"] == 5);
  CHECK(contains(full.json()["trace_error"].get<std::string>(), "/dev/full"));
  CHECK(contains(full.err, "No space left"));
}

TEST_CASE("a pipe whose reader has left costs nothing but the trace") {
  Folder folder;
  const std::string pipe = folder.path + "/t.json";
  REQUIRE(shell_command("mkfifo " + pipe).code == 0);
  Ended left = shell_command("(: < " + pipe + ") & " + troupe_program() + " " + kTrain +
                             "--steps 5 --trace " + pipe);
  CHECK(left.code == 0);
  CHECK(left.json()["steps"] == 5);
  CHECK(contains(left.json()["trace_error"].get<std::string>(), "Broken pipe"));
}

TEST_CASE("a resumed run that has nothing to do leaves an empty trace") {
  Folder folder;
  const std::string file = folder.path + "/t.json";
  const std::string job = kTrain + "--steps 4 --checkpoint-dir " + folder.path + "/ckpt ";
  REQUIRE(troupe_command(job).code == 0);
  auto traced = troupe_command(job + "--resume --trace " + file).json();
  REQUIRE(traced.is_object());
  CHECK(traced["traced_steps"] == 0);
  CHECK(read_trace(file)["traceEvents"].empty());
  traced = troupe_command(kTrain + "--steps 6 --checkpoint-dir " + folder.path +
                          "/ckpt --resume --trace " + file)
               .json();
  REQUIRE(traced.is_object());
  CHECK(traced["traced_steps"] == 2);
}
