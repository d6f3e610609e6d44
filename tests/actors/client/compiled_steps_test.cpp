// Steps are compiled on demand and only so many are kept: 64 a session.
#include <doctest/doctest.h>

#include <atomic>
#include <caf/actor_system.hpp>
#include <caf/actor_system_config.hpp>
#include <thread>

#include "actors/master/step_table.hpp"
#include "actors/runtime/residents.hpp"
#include "tests/actors/support/sessions.hpp"

using namespace troupe;
using namespace troupe::test;

namespace {

constexpr std::size_t kKept = 64;
constexpr int kMany = 100;

// The number of steps the master has.
std::string compiled(Session& s) {
  for (const std::string& line : s.describe())
    if (auto at = line.find("compiled "); at != std::string::npos)
      return line.substr(at + 9, line.find(',', at) - at - 9);
  return "?";
}

// kMany requests that differ in fetch, feed and target.
struct Requests {
  Graph g;
  Variable count = variable(g, "count", Tensor::scalar(0.0f));
  Output x = placeholder<float>(g, {}, "x");
  std::vector<Output> sums, doubled;
  std::vector<Op> adds;

  Requests() {
    for (int i = 0; i < kMany; ++i) {
      sums.push_back(x + float(i));
      doubled.push_back(sums.back() * 2.0f);
      adds.push_back(assign_add(count, constant(g, 1.0f)));
    }
  }
  // By turns one that fetches, one that also runs a target, one that feeds another node.
  CompiledStep compile(Session& s, int i) {
    if (i % 3 == 0) return s.compile({sums[i]}, {}, {x});
    if (i % 3 == 1) return s.compile({sums[i]}, {adds[i]}, {x});
    return s.compile({doubled[i]}, {}, {sums[i]});
  }
  static float expected(int i, float fed) { return i % 3 == 2 ? fed * 2 : fed + float(i); }
};

StepEntry entry(CompiledId id, std::uint64_t session = 1) {
  StepEntry e;
  e.id = id;
  e.session = session;
  e.key = "key " + std::to_string(id);
  return e;
}

}  // namespace

TEST_CASE("the least recently used step goes first") {
  StepTable table(3);
  for (CompiledId id : {1, 2, 3}) CHECK(table.add(entry(id)).empty());
  CHECK(table.find(1) != nullptr);  // a use
  CHECK(table.add(entry(4)) == std::vector<CompiledId>{2});
  CHECK(table.find(1, "key 3") != nullptr);
  CHECK(table.add(entry(5)) == std::vector<CompiledId>{1});
  CHECK(table.find(2) == nullptr);
  CHECK(table.find(1, "key 2") == nullptr);
  CHECK(table.size() == 3);
}

TEST_CASE("steps that run, that load and of other sessions stay") {
  StepTable table(2);
  for (CompiledId id : {1, 2}) table.add(entry(id));
  table.add(entry(3, 2));
  table.find(1)->running = 1;
  table.find(2)->loading = {TaskId{7}};
  CHECK(table.add(entry(4)).empty());
  CHECK(table.size() == 4);
  table.find(1)->running = 0;
  table.find(2)->loading.clear();
  CHECK(table.add(entry(5)).size() == 2);
  CHECK(table.of_session(2) == std::vector<CompiledId>{3});
}

TEST_CASE("equal requests share a step") {
  Requests r;
  Session s(r.g, one_thread());
  for (int i = 0; i < 5; ++i) s.compile({r.sums[0]}, {}, {r.x});
  CHECK(compiled(s) == "1");
}

TEST_CASE("a hundred requests: the master and the workers keep a bounded number of plans") {
  caf::actor_system_config config;
  config.set("scheduler.policy", caf::atom("sharing"));
  caf::actor_system system(config);
  Requests r;
  Session s(r.g, system, one_thread());
  s.init();
  const std::size_t before = Residents::find(system)->actors();  // with one executor, for init
  std::vector<CompiledStep> steps;
  for (int i = 0; i < kMany; ++i) steps.push_back(r.compile(s, i));
  CHECK(compiled(s) == std::to_string(kKept));
  // Executors that were told to go may need a moment.
  auto running = [&] {
    auto until = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    const auto residents = Residents::find(system);
    while (residents->actors() >= before + kKept && std::chrono::steady_clock::now() < until)
      std::this_thread::yield();
    return residents->actors();
  };
  CHECK(running() == before + kKept - 1);
  const int rounds = 3;
  for (int round = 0; round < rounds; ++round)
    for (int i = 0; i < kMany; ++i) {
      INFO("round ", round, ", step ", i);
      auto fed = Tensor::scalar(float(round) / 2);
      CHECK(steps[i].run({fed})[0].item<float>() == Requests::expected(i, float(round) / 2));
    }
  CHECK(compiled(s) == std::to_string(kKept));
  CHECK(s.run({r.count.value()})[0].item<float>() == rounds * 33);
  CHECK(running() == before + kKept - 1);
}

TEST_CASE("a step that was evicted says so when it is started, and runs when it is run") {
  Requests r;
  Session s(r.g, one_thread());
  auto held = s.compile({r.sums[0]}, {}, {r.x});
  for (int i = 1; i <= int(kKept); ++i) s.compile({r.sums[i]}, {}, {r.x});
  Status status = held.start({Tensor::scalar(1.0f)}).try_get().status();
  CHECK(status.code() == Code::not_found);
  CHECK(status.message().find("is not loaded any more") != std::string::npos);
  CHECK(held.run({Tensor::scalar(1.0f)})[0].item<float>() == 1);
  CHECK(held.start({Tensor::scalar(2.0f)}).get()[0].item<float>() == 2);  // it is back
}

TEST_CASE("a step that was evicted runs again whatever the client has added to its graph") {
  OpRegistry ops;
  for (const OpInfo* op : ops::builtin().ops.all()) REQUIRE(ops.add(op->def).ok());
  REQUIRE(ops.add({.name = "Unheard", .no_gradient = "it is in no other table"}).ok());
  GraphBuilder g(ops);
  Output x = g.try_add({.op = "Placeholder",
                        .attrs = {{"T", DType::f32}, {"shape", PartialShape(Shape{})}}})
                 ->output();
  std::vector<Output> negated;
  for (std::size_t i = 0; i <= kKept; ++i)
    negated.push_back(g.try_add({.op = "Neg", .inputs = {x}})->output());
  Session s(g, one_thread());
  auto held = s.compile({negated[0]}, {}, {x});
  for (std::size_t i = 1; i <= kKept; ++i) s.compile({negated[i]}, {}, {x});
  REQUIRE(g.try_add({.op = "Unheard"}).ok());
  REQUIRE(s.try_compile({x}).status().text().find("Unheard") != std::string::npos);
  CHECK(held.run({Tensor::scalar(1.0f)})[0].item<float>() == -1);
}

TEST_CASE("a step that runs is not evicted") {
  Graph g;
  Output q = fifo_queue(g, {DType::f32});
  Output out = dequeue(q, {DType::f32})[0];
  Op in = enqueue(q, {constant(g, 4.0f)});
  Output x = placeholder<float>(g, {}, "x");
  std::vector<Output> others;
  for (int i = 0; i < kMany; ++i) others.push_back(x + float(i));
  Session s(g, one_thread());
  auto take = s.compile({out});
  PendingRun waiting = take.start();
  for (const Output& other : others) s.compile({other}, {}, {x});
  CHECK(!waiting.done());
  s.run({}, {in});
  CHECK(waiting.get()[0].item<float>() == 4);
}

TEST_CASE("steps are evicted under clients that run them") {
  Requests r;
  Session s(r.g, one_thread());
  s.init();
  std::vector<std::thread> clients;
  std::atomic<int> wrong{0};
  for (int t = 0; t < 3; ++t)
    clients.emplace_back([&, t] {
      std::vector<CompiledStep> steps;
      for (int i = 0; i < kMany; ++i) steps.push_back(r.compile(s, (i * 7 + t * 31) % kMany));
      for (int i = 0; i < kMany; ++i) {
        auto result = steps[i].try_run({Tensor::scalar(1.0f)});
        if (!result.ok() ||
            result->at(0).item<float>() != Requests::expected((i * 7 + t * 31) % kMany, 1))
          ++wrong;
      }
    });
  for (auto& c : clients) c.join();
  CHECK(wrong == 0);
  CHECK(s.run({r.count.value()})[0].item<float>() == 3 * 33);
}

TEST_CASE("a step whose run passed its deadline can be evicted, and the session closes") {
  Graph g;
  Output q = fifo_queue(g, {DType::f32});
  Output out = dequeue(q, {DType::f32})[0];
  Output x = placeholder<float>(g, {}, "x");
  std::vector<Output> others;
  for (int i = 0; i < kMany; ++i) others.push_back(x + float(i));
  Session s(g, one_thread());
  auto take = s.compile({out});
  RunOptions options;
  options.timeout = std::chrono::milliseconds(5);
  CHECK(take.try_run({}, options).status().code() == Code::deadline_exceeded);
  for (const Output& other : others) s.compile({other}, {}, {x});
  CHECK(take.try_run({}, options).status().code() == Code::deadline_exceeded);
  CHECK(s.try_close().ok());
}
