// The machine that saves files, over a file system that fails and crashes.
#include <doctest/doctest.h>

#include "actors/resources/files.hpp"
#include "serialization/safetensors.hpp"
#include "tests/serialization/faulty_files.hpp"

using namespace troupe;
using troupe::testing::FaultyFiles;

namespace {

constexpr const char* kPath = "dir/m.safetensors";

struct Fixture {
  FaultyFiles disk{11};
  Files files{disk, 1};
  Resource::Outputs out;
  External save_op{.resource = "files", .verb = "save", .on_host = true, .commits = true};
  External restore_op{.resource = "files", .verb = "restore", .on_host = true};
  PlanInfo save_node, restore_node;

  Fixture() {
    REQUIRE(disk.make_dirs("dir").ok());
    save_node.external = &save_op;
    restore_node.external = &restore_op;
    for (PlanInfo* node : {&save_node, &restore_node}) {
      node->def.name = "n";
      node->def.attrs["names"] = Attr(std::vector<std::string>{"x"});
    }
    restore_node.def.out_types = {DType::f32};
    restore_node.def.out_shapes = {PartialShape::scalar()};
  }
  static AttemptInfo attempt(std::uint64_t a, CommitNumber snapshot = 0) {
    return {{1, a}, {1, a}, snapshot, a, 0, 0};
  }
  ResourceReply ask(const PlanInfo& node, const AttemptInfo& a, std::vector<Tensor> operands,
                    std::uint32_t key, std::uint32_t replica = 0) {
    ResourceRequest request;
    request.attempt = a;
    request.items.push_back({&node, nullptr, {key, replica, {}}, nullptr, 0, std::move(operands)});
    out.clear();
    files.ask(7, request, out);
    REQUIRE(!out.empty());
    auto reply = std::get<ResourceReply>(out.front());
    out.erase(out.begin());
    CHECK(reply.id == 7);
    return reply;
  }
  Status save(const AttemptInfo& a, float x, std::uint32_t key = 1, const char* prefix = "dir/m") {
    return ask(save_node, a, {Tensor::scalar<std::string>(prefix), Tensor::scalar(x)}, key).status;
  }
  Expected<float> restored(const AttemptInfo& a) {
    auto reply = ask(restore_node, a, {Tensor::scalar<std::string>("dir/m")}, 9);
    if (!reply.status.ok()) return reply.status;
    return reply.values.at(0).item<float>();
  }
  Status stage(CommitNumber s, std::uint64_t a, StageOrder order = StageOrder::stage,
               std::uint32_t keys = 1) {
    out.clear();
    files.stage({s, {1, a}, keys, 0, order}, out);
    if (order == StageOrder::withdraw) return {};
    REQUIRE(out.size() == 1);
    return std::get<ResourceStaged>(out[0]).status;
  }
  void live(std::uint64_t sequence, CommitNumber decided, std::uint64_t next_a) {
    files.live({1, sequence, decided, decided, next_a, {}}, out);
  }
  // What a program outside finds.
  Expected<float> content() {
    TROUPE_TRY(Safetensors found, read_safetensors(kPath, disk));
    return found.tensors.at("x").item<float>();
  }
  std::vector<std::string> names() { return disk.list("dir").value(); }
};

}  // namespace

TEST_CASE_FIXTURE(Fixture, "a file takes its place when its run is decided, not before") {
  REQUIRE(save(attempt(1), 1).ok());
  CHECK(content().status().code() == Code::not_found);
  REQUIRE(stage(1, 1).ok());
  CHECK(content().status().code() == Code::not_found);
  REQUIRE(stage(1, 1, StageOrder::apply).ok());
  CHECK(content().value() == 1);
  REQUIRE(save(attempt(2, 1), 2).ok());
  REQUIRE(stage(2, 2).ok());
  CHECK(content().value() == 1);
  live(1, 2, 3);
  CHECK(content().value() == 2);
  REQUIRE(stage(2, 2, StageOrder::apply).ok());
  CHECK(names() == std::vector<std::string>{"m.safetensors"});
  CHECK(files.at_rest());
}

TEST_CASE_FIXTURE(Fixture, "a run that is called off leaves the older file and nothing else") {
  REQUIRE(save(attempt(1), 1).ok());
  REQUIRE(stage(1, 1).ok());
  REQUIRE(stage(1, 1, StageOrder::apply).ok());
  REQUIRE(save(attempt(2, 1), 2).ok());
  SUBCASE("before it is staged") {}
  SUBCASE("after it is staged") {
    REQUIRE(stage(2, 2).ok());
    (void)stage(2, 2, StageOrder::withdraw);
  }
  live(1, 1, 3);
  CHECK(content().value() == 1);
  CHECK(names() == std::vector<std::string>{"m.safetensors"});
  CHECK(save(attempt(2, 1), 3).code() == Code::aborted);  // late
  CHECK(files.at_rest());
}

TEST_CASE_FIXTURE(Fixture, "a run restores what it has saved itself; others what is committed") {
  REQUIRE(save(attempt(1), 1).ok());
  REQUIRE(stage(1, 1).ok());
  REQUIRE(save(attempt(2, 1), 2).ok());  // its snapshot says that commit 1 is decided
  CHECK(content().value() == 1);
  CHECK(restored(attempt(2, 1)).value() == 2);
  CHECK(restored(attempt(3, 1)).value() == 1);
}

TEST_CASE_FIXTURE(Fixture, "of two files of one run under one path the later node's counts") {
  REQUIRE(save(attempt(1), 5, 8).ok());
  REQUIRE(save(attempt(1), 4, 3).ok());
  REQUIRE(save(attempt(1), 6, 8).ok());  // said again
  REQUIRE(stage(1, 1, StageOrder::stage, 2).ok());
  REQUIRE(stage(1, 1, StageOrder::apply).ok());
  CHECK(content().value() == 5);
  CHECK(names() == std::vector<std::string>{"m.safetensors"});
}

TEST_CASE_FIXTURE(Fixture,
                  "of the files of a node's replicas under one path the first one's counts") {
  const auto save_of = [&](std::uint32_t replica, float x, const char* prefix) {
    std::vector<Tensor> operands = {Tensor::scalar<std::string>(prefix), Tensor::scalar(x)};
    return ask(save_node, attempt(1), std::move(operands), 1, replica).status;
  };
  REQUIRE(save_of(2, 12, "dir/m").ok());
  REQUIRE(save_of(1, 11, "dir/m").ok());
  REQUIRE(save_of(0, 10, "dir/own").ok());
  REQUIRE(stage(1, 1, StageOrder::stage, 3).ok());
  REQUIRE(stage(1, 1, StageOrder::apply, 3).ok());
  CHECK(content().value() == 11);
  CHECK(names() == std::vector<std::string>{"m.safetensors", "own.safetensors"});
}

TEST_CASE_FIXTURE(Fixture, "a place that cannot be replaced is told before the run is decided") {
  REQUIRE(disk.make_dir("dir/m.safetensors").ok());
  Status status = save(attempt(1), 1);
  CHECK(status.code() == Code::failed_precondition);
  CHECK(status.text().find(kPath) != std::string::npos);
  CHECK(files.at_rest());
}

TEST_CASE_FIXTURE(Fixture, "a machine that ends takes undecided files along") {
  {
    Files other(disk, 2);
    ResourceRequest request;
    request.attempt = attempt(4);
    request.items.push_back({&save_node,
                             nullptr,
                             {1, 0, {}},
                             nullptr,
                             0,
                             {Tensor::scalar<std::string>("dir/m"), Tensor::scalar(1.0f)}});
    other.ask(1, request, out);
    CHECK(names().size() == 1);
  }
  CHECK(names().empty());
}

TEST_CASE("a full disk at any call keeps the older file and says why") {
  for (int call = 0;; ++call) {
    Fixture f;
    REQUIRE(f.save(Fixture::attempt(1), 1).ok());
    REQUIRE(f.stage(1, 1).ok());
    REQUIRE(f.stage(1, 1, StageOrder::apply).ok());
    f.disk.fail_at(f.disk.calls() + call);
    Status status = f.save(Fixture::attempt(2, 1), 2);
    if (status.ok()) status = f.stage(2, 2);
    const bool decided = status.ok();
    if (decided) status = f.stage(2, 2, StageOrder::apply);
    if (!f.disk.failed()) break;
    CAPTURE(call);
    if (!decided) f.live(1, 1, 3);
    const float now = f.content().value();
    CHECK((now == 1 || now == 2));
    if (!decided) CHECK(now == 1);
    if (!status.ok()) CHECK(status.text().find(kPath) != std::string::npos);
    if (now == 1) CHECK_FALSE((decided && status.ok()));
    REQUIRE(call < 100);
  }
}

TEST_CASE("two that save under one path do not meet on the way") {
  Fixture a;
  Files other(a.disk, 2);
  REQUIRE(a.save(Fixture::attempt(1), 1).ok());
  ResourceRequest request;
  request.attempt = Fixture::attempt(1);
  request.items.push_back({&a.save_node,
                           nullptr,
                           {1, 0, {}},
                           nullptr,
                           0,
                           {Tensor::scalar<std::string>("dir/m"), Tensor::scalar(2.0f)}});
  Resource::Outputs out;
  other.ask(1, request, out);
  CHECK(a.names().size() == 2);
  REQUIRE(a.stage(1, 1).ok());
  REQUIRE(a.stage(1, 1, StageOrder::apply).ok());
  CHECK(a.content().value() == 1);
  other.stage({1, {1, 1}, 1, 0}, out);
  other.stage({1, {1, 1}, 1, 0, StageOrder::apply}, out);
  CHECK(a.content().value() == 2);
  CHECK(a.names() == std::vector<std::string>{"m.safetensors"});
}
