// Checkpoints whose variables are written and read by the processes that have them.
#include <doctest/doctest.h>

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <set>
#include <thread>

#include "actors/client/job_state.hpp"
#include "ops/api/math.hpp"
#include "serialization/checkpoint.hpp"
#include "tests/actors/support/sessions.hpp"
#include "tests/serialization/temporary.hpp"

using namespace troupe;
using namespace troupe::test;
using troupe::testing::TemporaryDir;

namespace {

// Variables of two tasks, one of a dtype that safetensors does not hold, and no queue.
struct TwoHomes {
  Graph g{7};
  std::vector<Variable> on_first, on_second;
  Variable words, count;
  Op step;

  explicit TwoHomes(const char* first = "", const char* second = "") {
    for (int i = 0; i < 3; ++i) {
      const std::string n = std::to_string(i);
      on_first.push_back(variable_on(g, first, "a" + n, Tensor::of<float>({2}, {float(i), 1})));
      on_second.push_back(variable_on(g, second, "b" + n, Tensor::scalar(std::int64_t{i})));
    }
    words = variable_on(g, second, "words", Tensor::of<std::string>({2}, {"x", "y z"}));
    count = variable_on(g, first, "count", Tensor::scalar(0.f));
    step = assign_add(count, ones(g, {}));
    for (Variable v : on_first) (void)v.value();
    for (Variable v : on_second) (void)v.value();
    (void)words.value();
    (void)count.value();
  }
};

std::set<std::set<std::string>> parts_of(const std::string& path) {
  std::set<std::set<std::string>> parts;
  const StoredCheckpoint checkpoint = value_or_throw(open_checkpoint(path));
  for (const CheckpointFile& file : checkpoint.files) {
    std::set<std::string> names;
    for (const StoredTensor& each : file.tensors) names.insert(each.name);
    parts.insert(names);
  }
  return parts;
}

}  // namespace

TEST_CASE("each process writes the variables that it has, and reads those that it will have") {
  const TemporaryDir dir;
  {
    TwoHomes program(kTask0, kTask1);
    TcpWorkers workers(2);
    Session s(program.g, workers.cluster());
    s.init();
    s.run({}, {program.step});
    const std::string path = s.save_job(dir.path("job"));
    CHECK(parts_of(path) == std::set<std::set<std::string>>{
                                {"a0", "a1", "a2", "count"}, {"b0", "b1", "b2"}, {"words"}});
    s.run({}, {program.step});
    // The second one leaves nothing of the first behind but the checkpoint.
    s.save_job(dir.path("job"));
    for (const std::string& name : dir.names("job"))
      CHECK_MESSAGE((name == ".lock" || name == "ckpt-2" || name == "ckpt-3"), name);
  }
  for (int tasks : {0, 1, 2, 3}) {
    INFO(tasks << " workers");
    const bool spread = tasks >= 2;
    TwoHomes program(spread ? kTask0 : "", spread ? kTask1 : "");
    std::unique_ptr<TcpWorkers> workers;
    if (tasks > 0) workers = std::make_unique<TcpWorkers>(tasks);
    Session s(program.g, workers ? workers->cluster() : one_thread());
    const std::size_t nodes = program.g.def().nodes.size();
    s.restore_job(dir.path("job"));
    CHECK(program.g.def().nodes.size() == nodes);
    CHECK(s.committed() == 3);
    CHECK(s.run({program.count.value()})[0].item<float>() == 2);
    for (int i = 0; i < 3; ++i) {
      CHECK(s.run({program.on_first[std::size_t(i)].value()})[0].data<float>()[0] == float(i));
      CHECK(s.run({program.on_second[std::size_t(i)].value()})[0].item<std::int64_t>() == i);
    }
    CHECK(s.run({program.words.value()})[0].span<std::string>()[1] == "y z");
    s.run({}, {program.step});
    CHECK(s.run({program.count.value()})[0].item<float>() == 3);
  }
}

TEST_CASE("a variable of an accelerator is written and read by the process that drives it") {
  const TemporaryDir dir;
  for (bool restored : {false, true}) {
    Graph g;
    Variable v = variable_on(g, "/device:FAKE:0", "v", Tensor::of<float>({2}, {1, 2}));
    const Op add = [&] {
      auto there = g.with_device("/device:FAKE:0");
      return assign_add(v, v.value());
    }();
    Cluster cluster = one_thread();
    cluster.devices = {"CPU", "FAKE"};
    Session s(g, cluster);
    if (restored) {
      s.restore_job(dir.path("job"));
    } else {
      s.init();
      s.run({}, {add});
      s.save_job(dir.path("job"));
    }
    CHECK(s.run({v.value()})[0].data<float>()[1] == 4);
  }
}

// Manifests are JSON. A variable may have any name in a graph.
TEST_CASE("a variable whose name is not UTF-8 is refused by checkpoints, and the session goes on") {
  const TemporaryDir dir;
  for (const Tensor& value : {Tensor::scalar(1.f), Tensor::scalar<std::string>("word")}) {
    CAPTURE(dtype_name(value.dtype()));
    Graph g;
    const Variable v = variable(g, "v", value,
                                {.shared_name = "gr\xfc"
                                                "n"});
    Session s(g, one_thread());
    s.init();
    says(s.try_save_job(dir.path("job")).status(), Code::invalid_argument, "not UTF-8");
    CHECK(s.run({v.value()})[0].dtype() == value.dtype());
  }
}

TEST_CASE("what a checkpoint and the graph do not have in common is named, and nothing restored") {
  const TemporaryDir dir;
  {
    Graph g;
    Variable v = variable(g, "v", Tensor::of<float>({2}, {1, 2}));
    Variable w = variable(g, "w", Tensor::scalar(7.f));
    (void)v.value();
    (void)w.value();
    Session s(g, one_thread());
    s.init();
    s.save_job(dir.path("job"));
  }
  Graph other_shape, too_few, right;
  (void)variable(other_shape, "v", Tensor::of<float>({3}, {1, 2, 3})).value();
  (void)variable(other_shape, "w", Tensor::scalar(0.f)).value();
  (void)variable(too_few, "v", Tensor::of<float>({2}, {0, 0})).value();
  {
    Session s(other_shape, one_thread());
    const Status status = s.try_restore_job(dir.path("job"));
    CHECK(status.code() == Code::invalid_argument);
    CHECK_MESSAGE(status.text().find("restoring 'v'") != std::string::npos, status.text());
    s.init();
  }
  {
    Session s(too_few, one_thread());
    const Status status = s.try_restore_job(dir.path("job"));
    CHECK(status.code() == Code::not_found);
    CHECK_MESSAGE(status.text().find("'w'") != std::string::npos, status.text());
  }
  // A file that changes after it was verified: who reads it compares again.
  Output v = variable(right, "v", Tensor::of<float>({2}, {0, 0})).value();
  (void)variable(right, "w", Tensor::scalar(0.f)).value();
  Session s(right, one_thread());
  JobState state = state_of(
      value_or_throw(open_checkpoint(value_or_throw(latest_checkpoint(dir.path("job"))).path)));
  REQUIRE(state.stored.size() == 2);
  JobState damaged = state;
  damaged.stored[0].tensor.sha256[0] ^= 1;
  const Status status = s.try_restore(damaged);
  CHECK(status.code() == Code::data_loss);
  CHECK_MESSAGE(status.text().find("is not what the manifest states") != std::string::npos,
                status.text());
  CHECK(s.try_restore(state).ok());
  CHECK(s.run({v})[0].data<float>()[1] == 2);
}

TEST_CASE(
    "a graph with a queue is written by its processes, too, and the queue's contents with it") {
  const TemporaryDir dir;
  const auto elements = [](const TwoHomes& program, const char* device) {
    return queue_on(const_cast<Graph&>(program.g), device, {.capacity = 4, .shared_name = "left"});
  };
  {
    TwoHomes program(kTask0, kTask1);
    const Output queue = elements(program, kTask1);
    const Op put = enqueue(queue, {program.count.value()});
    TcpWorkers workers(2);
    Session s(program.g, workers.cluster());
    s.init();
    for (int i = 0; i < 3; ++i) s.run({}, {put, program.step});
    const std::string path = s.save_job(dir.path("job"));
    CHECK(parts_of(path) == std::set<std::set<std::string>>{
                                {"a0", "a1", "a2", "count"}, {"b0", "b1", "b2"}, {"words"}});
    CHECK(value_or_throw(open_checkpoint(path)).data.resources.size() == 1);
  }
  TwoHomes program;
  const Output queue = elements(program, "");
  const Output taken = take_from(queue), size = queue_size(queue);
  Session s(program.g, one_thread());
  s.restore_job(dir.path("job"));
  CHECK(s.committed() == 4);
  CHECK(s.run({size})[0].item<std::int64_t>() == 3);
  CHECK(s.run({taken})[0].item<float>() == 0);
  CHECK(s.run({taken})[0].item<float>() == 1);
  CHECK(s.run({program.count.value()})[0].item<float>() == 3);
}

TEST_CASE(
    "a queue and the variables of a checkpoint are of one commit, whatever commits meanwhile") {
  const TemporaryDir dir;
  Graph g;
  const Variable count = variable(g, "count", 0.f);
  const Output queue = queue_on(g, "", {.capacity = 64, .shared_name = "q"});
  const Output element = take_from(queue);
  const Op put = enqueue(queue, {constant(g, 1.f)}), more = assign_add(count, constant(g, 1.f));
  const Op fewer = assign_add(count, 0.f - element);
  (void)count.value();
  Session s(g, one_thread());
  s.init();
  const CompiledStep in = s.compile({}, {put, more}), out = s.compile({}, {fewer});
  std::atomic<bool> over{false};
  std::thread traffic([&] {
    for (int i = 0; !over; ++i) (i % 2 == 1 ? out : in).run();
  });
  for (int i = 0; i < 8; ++i) {
    const CheckpointData data = value_or_throw(read_checkpoint(s.save_job(dir.path("job"))));
    REQUIRE(data.resources.size() == 1);
    Graph there;
    const Variable kept = variable(there, "count", 0.f);
    const Output size = queue_size(queue_on(there, "", {.capacity = 64, .shared_name = "q"}));
    const Output value = kept.value();
    Session back(there, one_thread());
    back.restore(state_of(data));
    const auto found = back.run({value, size});
    CHECK(found[0].item<float>() == float(found[1].item<std::int64_t>()));
  }
  over = true;
  traffic.join();
}
