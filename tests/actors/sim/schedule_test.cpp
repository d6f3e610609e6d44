// The cluster's actors under many schedules: whatever happens in which order, the result is one.
#include <doctest/doctest.h>

#include <memory>
#include <set>

#include "core/log.hpp"
#include "ops/optim/optim.hpp"
#include "tests/actors/sim/world.hpp"
#include "tests/actors/support/nodes.hpp"

using namespace troupe;
using namespace troupe::test;

namespace {

struct Outcome {
  std::string bytes;  // of everything fetched, in order
  std::uint64_t trace = 0, network_trace = 0, events = 0;
  bool operator==(const Outcome&) const = default;
};

// A line fitted to points drawn anew in each step by two replicas; a parameter on each worker.
Outcome train(std::uint64_t seed) {
  Graph g(7);
  Output x = random_standard_normal(g, {8});
  Variable slope = variable_on(g, kTask0, "slope", Tensor::scalar(0.0f));
  Variable offset = variable_on(g, kTask1, "offset", Tensor::scalar(0.0f));
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
  Outcome outcome{client.fetched_bytes(), world.trace(), world.network_trace(), world.events()};
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

// Adds on both workers, which need what the other one computes.
std::vector<Op> adds_on_both(Graph& g) {
  Output x = random_standard_normal(g, {8});
  std::vector<Op> adds;
  for (const char* task : {kTask0, kTask1}) {
    auto there = g.with_device(task);
    Variable v = variable(g, "v", Tensor::scalar(0.0f));
    adds.push_back(assign_add(v, mean(x * v.value())));
  }
  return adds;
}

// A worker is killed somewhere in the middle: the client is told, and nothing waits for ever.
bool lose_worker(std::uint64_t seed) {
  Graph g(7);
  std::vector<Op> adds = adds_on_both(g);
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

// The connection between two workers breaks, both live on: the client is told soon, with both
// names.
bool break_link(std::uint64_t seed) {
  Graph g(7);
  std::vector<Op> adds = adds_on_both(g);
  World world(seed);
  Random random(seed);
  Client client(world.master(), 1, g, 2);
  client.init().compile("add", {}, adds).run("add", 200).close();
  world.break_link_after(random.below(600), 1, 2);
  Status status = world.run({&client});
  CHECK_MESSAGE(status.ok(), status.text());
  CHECK(world.link_broken());
  const Status& told = client.status();
  CHECK_MESSAGE(told.code() == Code::unavailable, told.text());
  for (const char* part : {"its link to worker 0 at ", "worker 1 at ", "the connection was reset"})
    CHECK_MESSAGE(told.text().find(part) != std::string::npos, told.text());
  Status end = world.shut_down();
  CHECK_MESSAGE(end.ok(), end.text());
  return !told.ok();
}

// The events of steps that use one of so many queues, and of all that comes of them.
std::uint64_t events_with_queues(int queues) {
  Graph g(7);
  std::vector<Op> puts;
  Output first;
  for (int q = 0; q < queues; ++q) {
    const Output queue = queue_on(g, kTask0);
    if (q == 0) first = queue;
    puts.push_back(enqueue(queue, {constant(g, 1.f)}));
  }
  World world(3);
  Client client(world.master(), 1, g);
  client.compile("all", {}, puts).run("all");
  client.compile("put", {}, {puts[0]}).compile("take", {take_from(first)}, {});
  REQUIRE(world.run({&client}).ok());
  world.pass(std::chrono::seconds(10));
  const std::uint64_t before = world.events();
  for (int i = 0; i < 20; ++i) client.run("take").run("put");
  REQUIRE(world.run({&client}).ok());
  world.pass(std::chrono::seconds(10));
  CHECK_MESSAGE(client.status().ok(), client.status().text());
  const std::uint64_t events = world.events() - before;
  CHECK(world.shut_down().ok());
  return events;
}

template <class Fault>
void told_under(std::uint64_t seeds, Fault fault) {
  std::uint64_t told = 0;
  LogLevel before = log_level();
  set_log_level(LogLevel::off);  // each loss is logged
  for (std::uint64_t seed = 0; seed < seeds; ++seed) {
    CAPTURE(seed);
    told += fault(seed) ? 1 : 0;
  }
  set_log_level(before);
  CHECK(told > seeds / 4);  // most faults did come before the end
  MESSAGE("a fault was told in ", told, " of ", seeds);
}

// A queue known to two sessions by name; the one side waits, the other one comes when it likes.
void two_sessions(std::uint64_t seed) {
  constexpr int kElements = 4;
  const FIFOQueueOptions between{.capacity = 2, .shared_name = "between"};
  Graph takes, gives;
  Output taken = take_from(queue_on(takes, kTask1, between));
  Variable count = variable_on(gives, kTask0, "count", Tensor::scalar(1.0f));
  Op put = enqueue(queue_on(gives, kTask1, between), {count.value() * 10.0f});
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

// Two sessions add to two variables and read them while a third one resets and initialises them. A
// reset comes between two runs: no run finds one variable reset and the other one not.
Outcome resets(std::uint64_t seed) {
  constexpr int kRuns = 8;
  struct Side {
    Side() {
      for (const char* task : {kTask0, kTask1}) {
        auto there = g.with_device(task);
        Variable v = variable(g, task == kTask0 ? "left" : "right", Tensor::scalar(0.0f));
        reads.push_back(v.value());
        flags.push_back(is_variable_initialized(v.handle()));
        adds.push_back(assign_add(v, constant(g, 1.0f)));
      }
    }
    Graph g;
    std::vector<Output> reads, flags;
    std::vector<Op> adds;
  };
  Side sides[3];

  World world(seed);
  std::vector<std::unique_ptr<Client>> clients;
  std::vector<Client*> all;
  for (Side& side : sides) {
    clients.push_back(std::make_unique<Client>(world.master(), clients.size() + 1, side.g));
    all.push_back(clients.back().get());
  }
  for (int c : {0, 1})
    for (int i = 0; i < kRuns; ++i) {
      // Not found is what a reset between the two makes of it.
      all[c]->compile("add", sides[c].reads, sides[c].adds).try_run("add", kNever);
      all[c]->compile("look", sides[c].flags, {}).try_run("look", kNever);
    }
  for (const auto& containers : {std::vector<std::string>{""}, {"", "other"}, {"other"}}) {
    all[2]->init().compile("look", sides[2].flags, {});
    for (int i = 0; i < 6; ++i) all[2]->try_run("look", kNever);  // meanwhile the others add
    all[2]->reset(containers);
  }
  all[2]->reset({""});
  Status status = world.run(all);
  REQUIRE_MESSAGE(status.ok(), status.text());
  std::string codes;
  for (const Client* client : all) {
    CHECK_MESSAGE(client->status().ok(), client->status().text());
    for (std::size_t i = 0; i < client->fetched().size(); ++i) {
      const Status& ended = client->ended()[i];
      codes += code_name(ended.code());
      if (!ended.ok()) {
        const bool known = ended.code() == Code::aborted || ended.code() == Code::not_found ||
                           ended.code() == Code::failed_precondition;
        CHECK_MESSAGE(known, ended.text());
      } else if (const auto& values = client->fetched()[i]; !values.empty()) {
        CHECK(Tensor::same(values[0], values[1]));
      }
    }
  }
  const std::size_t last = all[2]->fetched().size();
  all[2]->compile("look", sides[2].flags, {}).run("look").init();
  all[2]->compile("add", {}, sides[2].adds).run("add", 2);
  all[2]->compile("read", sides[2].reads, {}).run("read");
  for (Client* client : all) client->close();
  status = world.run(all);
  REQUIRE_MESSAGE(status.ok(), status.text());
  REQUIRE_MESSAGE(all[2]->status().ok(), all[2]->status().text());
  for (int v : {0, 1}) {
    CHECK_FALSE(all[2]->fetched()[last][v].item<bool>());
    CHECK(all[2]->fetched().back()[v].item<float>() == 2);
  }
  Outcome outcome{codes, world.trace(), world.network_trace(), world.events()};
  Status end = world.shut_down();
  CHECK_MESSAGE(end.ok(), end.text());
  return outcome;
}

void resets_under(std::uint64_t seeds) {
  std::set<std::string> courses;
  for (std::uint64_t seed = 0; seed < seeds; ++seed) {
    CAPTURE(seed);
    courses.insert(resets(seed).bytes);
  }
  CHECK(courses.size() > 20);
  CHECK(resets(1) == resets(1));
}

// A worker is killed around a reset: its caller is answered, and nothing waits for ever.
void lose_worker_around_reset(std::uint64_t seed) {
  Graph g(7);
  std::vector<Op> adds;
  for (const char* task : {kTask0, kTask1}) {
    auto there = g.with_device(task);
    Variable v = variable(g, "v", Tensor::scalar(0.0f));
    adds.push_back(assign_add(v, v.value()));
  }
  World world(seed);
  Random random(seed);
  Client client(world.master(), 1, g), resetter(world.master(), 2, g);
  client.init().compile("add", {}, adds);
  for (int i = 0; i < 5; ++i) client.try_run("add", kNever);
  resetter.reset({""}).reset({""}).reset({""});
  world.crash_after(random.below(400), ProcessId(1 + random.below(2)));
  Status status = world.run({&client, &resetter});
  CHECK_MESSAGE(status.ok(), status.text());
  for (const Client* c : {&client, &resetter})
    if (!c->status().ok() && c->status().code() != Code::aborted)  // of a reset
      CHECK_MESSAGE((world.crashed() || c->status().code() == Code::not_found), c->status().text());
  Status end = world.shut_down();
  CHECK_MESSAGE(end.ok(), end.text());
}

void lose_worker_around_reset_under(std::uint64_t seeds) {
  LogLevel before = log_level();
  set_log_level(LogLevel::off);
  for (std::uint64_t seed = 0; seed < seeds; ++seed) {
    CAPTURE(seed);
    lose_worker_around_reset(seed);
  }
  set_log_level(before);
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

TEST_CASE("a commit costs what it touches, however many queues a session has") {
  const std::uint64_t few = events_with_queues(2), many = events_with_queues(300);
  MESSAGE("events with 2 queues: ", few, ", with 300: ", many);
  CHECK(many < few + few / 2);
}

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
  told_under(schedules(30), lose_worker);
}

TEST_CASE("a broken link between two workers is told to the client under every schedule") {
  told_under(schedules(30), break_link);
}

TEST_CASE("a broken link is told to the client under every schedule, long [slow]") {
  told_under(schedules(1000), break_link);
}

TEST_CASE("the loss of a worker is told to the client under every schedule, long [slow]") {
  told_under(schedules(1000), lose_worker);
}

TEST_CASE("a reset comes between two runs under every schedule") { resets_under(schedules(40)); }

TEST_CASE("a reset comes between two runs under every schedule, long [slow]") {
  resets_under(schedules(1000));
}

TEST_CASE("the loss of a worker around a reset leaves nobody waiting under any schedule") {
  lose_worker_around_reset_under(schedules(40));
}

TEST_CASE(
    "the loss of a worker around a reset leaves nobody waiting under any schedule, long [slow]") {
  lose_worker_around_reset_under(schedules(1000));
}

TEST_CASE("a run that fails beside its write commits nothing under any schedule") {
  for (std::uint64_t seed = 0; seed < schedules(40); ++seed) {
    CAPTURE(seed);
    failing_beside_write(seed);
  }
}
