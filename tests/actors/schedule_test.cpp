// The cluster's actors under many schedules: whatever happens in which order, the result is one.
#include <doctest/doctest.h>

#include <set>

#include "core/log.hpp"
#include "ops/api/constant.hpp"
#include "ops/api/generated.hpp"
#include "ops/api/operators.hpp"
#include "ops/api/variable.hpp"
#include "ops/graph_api.hpp"
#include "ops/optim/optim.hpp"
#include "tests/actors/world.hpp"

using namespace troupe;
using troupe::test::Client;
using troupe::test::schedules;
using troupe::test::World;

namespace {

const char* const kTask0 = "/job:worker/task:0";
const char* const kTask1 = "/job:worker/task:1";

struct Outcome {
  std::string bytes;  // of everything fetched, in order
  std::uint64_t trace = 0, network_trace = 0, events = 0;
  bool operator==(const Outcome&) const = default;
};

std::string bytes_of(const Client& client) {
  std::string bytes;
  for (const auto& run : client.fetched())
    for (const Tensor& t : run) bytes.append(static_cast<const char*>(t.raw()), t.bytes());
  return bytes;
}

// A line fitted to points drawn anew in each step by two replicas; a parameter on each worker.
Outcome train(std::uint64_t seed) {
  Graph g(7);
  Output x = random_standard_normal(g, {8});
  Variable slope, offset;
  {
    auto there = g.with_device(kTask0);
    slope = variable(g, "slope", Tensor::scalar(0.0f));
  }
  {
    auto there = g.with_device(kTask1);
    offset = variable(g, "offset", Tensor::scalar(0.0f));
  }
  Output error = slope.value() * x + offset.value() - (x * 3.0f + 1.0f);
  Output loss = mean(error * error);
  Op train = optim::Sgd{.lr = 0.1}.minimize(loss);

  World world(seed);
  Client client(world.master(), 1, g, 2);
  client.init().compile("train", {loss}, {train}).run("train", 5);
  client.compile("read", {slope.value(), offset.value()}, {}, 1).run("read").close();
  Status status = world.run({&client});
  CHECK_MESSAGE(status.ok(), status.text());
  CHECK_MESSAGE(client.status().ok(), client.status().text());
  Outcome outcome{bytes_of(client), world.trace(), world.network_trace(), world.events()};
  Status end = world.shut_down();
  CHECK_MESSAGE(end.ok(), end.text());
  return outcome;
}

void same_result_under(std::uint64_t seeds) {
  Outcome first = train(0);
  // Five losses and two parameters: it did train.
  REQUIRE(first.bytes.size() == 7 * sizeof(float));
  const float* values = reinterpret_cast<const float*>(first.bytes.data());
  CHECK(values[4] < values[0]);
  CHECK(values[5] > 1);
  std::set<std::uint64_t> traces;
  for (std::uint64_t seed = 1; seed <= seeds; ++seed) {
    CAPTURE(seed);
    Outcome outcome = train(seed);
    REQUIRE((outcome.bytes == first.bytes));
    traces.insert(outcome.trace);
  }
  CHECK(traces.size() == seeds);
  CHECK(train(1) == train(1));
  MESSAGE("seeds: ", seeds, ", events of seed 0: ", first.events);
}

// A worker is killed somewhere in the middle: the client is told, and nothing waits for ever.
bool lose_worker(std::uint64_t seed) {
  Graph g(7);
  Output x = random_standard_normal(g, {8});
  std::vector<Op> adds;
  for (const char* task : {kTask0, kTask1}) {
    auto there = g.with_device(task);
    Variable v = variable(g, "v", Tensor::scalar(0.0f));
    adds.push_back(assign_add(v, mean(x * v.value())));
  }
  World world(seed);
  Random random(seed);
  Client client(world.master(), 1, g, 2);
  client.init().compile("add", {}, adds).run("add", 5).close();
  world.crash_after(random.below(600), ProcessId(1 + random.below(2)));
  Status status = world.run({&client});
  CHECK_MESSAGE(status.ok(), status.text());
  if (!client.status().ok()) {
    CHECK(world.crashed());
    CHECK_MESSAGE(client.status().code() == Code::unavailable, client.status().text());
  }
  Status end = world.shut_down();
  CHECK_MESSAGE(end.ok(), end.text());
  return !client.status().ok();
}

void lose_worker_under(std::uint64_t seeds) {
  std::uint64_t told = 0;
  LogLevel before = log_level();
  set_log_level(LogLevel::off);  // each loss is logged
  for (std::uint64_t seed = 0; seed < seeds; ++seed) {
    CAPTURE(seed);
    told += lose_worker(seed) ? 1 : 0;
  }
  set_log_level(before);
  CHECK(told > seeds / 4);  // most crashes did come before the end
  MESSAGE("a crash was told in ", told, " of ", seeds);
}

// A queue known to two sessions by name; the one side waits, the other one comes when it likes.
void two_sessions(std::uint64_t seed) {
  constexpr int kElements = 4;
  auto queue = [](Graph& g) {
    auto there = g.with_device(kTask1);
    FIFOQueueOptions options;
    options.shapes = {PartialShape::scalar()};
    options.capacity = 2;
    options.shared_name = "between";
    return fifo_queue(g, {DType::f32}, options);
  };
  DequeueOptions shapes;
  shapes.shapes = {PartialShape::scalar()};
  Graph takes, gives;
  Output taken = dequeue(queue(takes), {DType::f32}, shapes)[0];
  Variable count;
  {
    auto there = gives.with_device(kTask0);
    count = variable(gives, "count", Tensor::scalar(1.0f));
  }
  Op put = enqueue(queue(gives), {count.value() * 10.0f});
  Op add = assign_add(count, constant(gives, 1.0f));

  World world(seed);
  Client taker(world.master(), 1, takes), giver(world.master(), 2, gives);
  taker.compile("take", {taken}, {}).run("take", kElements).close();
  giver.init().compile("put", {}, {put, add}).run("put", kElements).close();
  Status status = world.run({&taker, &giver});
  CHECK_MESSAGE(status.ok(), status.text());
  CHECK_MESSAGE(taker.status().ok(), taker.status().text());
  CHECK_MESSAGE(giver.status().ok(), giver.status().text());
  REQUIRE(taker.fetched().size() == kElements);
  for (int i = 0; i < kElements; ++i)
    CHECK(taker.fetched()[std::size_t(i)][0].item<float>() == 10.0f * float(i + 1));
  Status end = world.shut_down();
  CHECK_MESSAGE(end.ok(), end.text());
}

// Two sessions add to the same two variables, one on each worker, at the same time. A snapshot in
// which they differ, or a sum that lacks something, would be a transaction that was none.
void concurrent_writers(std::uint64_t seed) {
  constexpr int kRuns = 4;
  struct Side {
    explicit Side(float amount) {
      for (const char* task : {kTask0, kTask1}) {
        auto there = g.with_device(task);
        Variable v = variable(g, task == kTask0 ? "left" : "right", Tensor::scalar(0.0f));
        reads.push_back(v.value());
        adds.push_back(assign_add(v, constant(g, amount)));
      }
    }
    Graph g;
    std::vector<Output> reads;
    std::vector<Op> adds;
  };
  Side small(1), big(100);

  World world(seed);
  Client first(world.master(), 1, small.g), second(world.master(), 2, big.g);
  first.init();
  REQUIRE(world.run({&first}).ok());
  first.compile("add", small.reads, small.adds).run("add", kRuns);
  second.compile("add", big.reads, big.adds).run("add", kRuns);
  Status status = world.run({&first, &second});
  REQUIRE_MESSAGE(status.ok(), status.text());
  first.compile("read", small.reads, {}).run("read").close();
  second.close();
  status = world.run({&first, &second});
  CHECK_MESSAGE(status.ok(), status.text());
  for (const Client* client : {&first, &second}) {
    CHECK_MESSAGE(client->status().ok(), client->status().text());
    for (const auto& run : client->fetched())
      if (!run.empty()) CHECK(run[0].item<float>() == run[1].item<float>());
  }
  CHECK(first.fetched().back()[0].item<float>() == 101.0f * kRuns);
  Status end = world.shut_down();
  CHECK_MESSAGE(end.ok(), end.text());
}

// A run of one partition, whose only write could carry the decision, reads beside it what fails.
void failing_beside_write(std::uint64_t seed) {
  Graph g;
  auto there = g.with_device(kTask0);
  Variable v = variable(g, "v", Tensor::scalar(0.0f));
  Variable unset = variable(g, "unset", Tensor::scalar(0.0f));
  Op first = assign(v, constant(g, 0.0f)), add = assign_add(v, constant(g, 1.0f));

  World world(seed);
  Client client(world.master(), 1, g);
  client.compile("first", {}, {first}).run("first").compile("add", {}, {add});
  client.compile("fails", {unset.value()}, {add}).compile("read", {v.value()}, {});
  for (int i = 0; i < 3; ++i) client.try_run("fails", kNever).run("add");
  client.run("read").close();
  Status status = world.run({&client});
  CHECK_MESSAGE(status.ok(), status.text());
  REQUIRE_MESSAGE(client.status().ok(), client.status().text());
  for (std::size_t i : {1, 3, 5}) CHECK(client.ended()[i].code() == Code::failed_precondition);
  CHECK(client.fetched().back()[0].item<float>() == 3);
  Status end = world.shut_down();
  CHECK_MESSAGE(end.ok(), end.text());
}

void concurrent_writers_under(std::uint64_t seeds) {
  for (std::uint64_t seed = 0; seed < seeds; ++seed) {
    CAPTURE(seed);
    concurrent_writers(seed);
  }
}

void two_sessions_under(std::uint64_t seeds) {
  for (std::uint64_t seed = 0; seed < seeds; ++seed) {
    CAPTURE(seed);
    two_sessions(seed);
  }
}

}  // namespace

TEST_CASE("every schedule of a training cluster gives the same result") {
  same_result_under(schedules(30));
}

TEST_CASE("every schedule of a training cluster gives the same result, long [slow]") {
  same_result_under(schedules(1000));
}

TEST_CASE(
    "two sessions, one blocked in Dequeue and one that enqueues, make progress under every "
    "schedule") {
  two_sessions_under(schedules(30));
}

TEST_CASE(
    "two sessions, one blocked in Dequeue and one that enqueues, make progress under every "
    "schedule, long [slow]") {
  two_sessions_under(schedules(1000));
}

TEST_CASE("concurrent writers on two workers are transactions under every schedule") {
  concurrent_writers_under(schedules(30));
}

TEST_CASE("concurrent writers on two workers are transactions under every schedule, long [slow]") {
  concurrent_writers_under(schedules(1000));
}

TEST_CASE("the loss of a worker is told to the client under every schedule") {
  lose_worker_under(schedules(30));
}

TEST_CASE("the loss of a worker is told to the client under every schedule, long [slow]") {
  lose_worker_under(schedules(1000));
}

TEST_CASE("a run that fails beside its write commits nothing under any schedule") {
  for (std::uint64_t seed = 0; seed < schedules(60); ++seed) {
    CAPTURE(seed);
    failing_beside_write(seed);
  }
}
