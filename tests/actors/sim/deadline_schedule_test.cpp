// Deadlines of runs under many schedules, in virtual time.
#include <doctest/doctest.h>

#include <algorithm>

#include "tests/actors/sim/world.hpp"
#include "tests/actors/support/nodes.hpp"

using namespace troupe;
using namespace troupe::test;
using namespace std::chrono_literals;

namespace {

struct DeadlineOutcome {
  std::string text;  // how each run ended, and what it fetched
  std::uint64_t trace = 0, network_trace = 0, events = 0;
  Instant now{0};
  int passed = 0, fired = 0;
  bool operator==(const DeadlineOutcome&) const = default;
};

void note(const Client& client, DeadlineOutcome& outcome) {
  for (std::size_t i = 0; i < client.ended().size(); ++i) {
    const Status& status = client.ended()[i];
    outcome.text += status.text() + "\n";
    for (const Tensor& t : client.fetched()[i]) outcome.text += t.text() + "\n";
    if (status.ok()) {
      ++outcome.passed;
    } else {
      ++outcome.fired;
      CHECK_MESSAGE(status.code() == Code::deadline_exceeded, status.text());
    }
  }
}

void end(World& world, DeadlineOutcome& outcome) {
  outcome.trace = world.trace();
  outcome.network_trace = world.network_trace();
  outcome.events = world.events();
  outcome.now = world.now();
  Status status = world.shut_down();
  CHECK_MESSAGE(status.ok(), status.text());
}

void proceed(World& world, const std::vector<Client*>& clients) {
  Status status = world.run(clients);
  REQUIRE_MESSAGE(status.ok(), status.text());
  for (const Client* client : clients)
    REQUIRE_MESSAGE(client->status().ok(), client->status().text());
}

// Tens of microseconds, when hardly a message arrives, to milliseconds, when runs are over.
Instant draw_timeout(Random& random) {
  return std::chrono::microseconds((std::uint64_t{20} << random.below(10)) + random.below(20));
}

// A run whose half on one worker is done at once while the other half waits for an element that
// does not come. Then one comes.
DeadlineOutcome fire(std::uint64_t seed) {
  Graph g;
  Variable left = variable_on(g, kTask0, "left", Tensor::scalar(0.0f));
  Variable right = variable_on(g, kTask1, "right", Tensor::scalar(0.0f));
  Output queue = queue_on(g, kTask1);
  Output taken = take_from(queue);
  Op put = enqueue(queue, {left.value() + 5.0f});
  std::vector<Op> take{assign_add(left, constant(g, 1.0f)), assign_add(right, taken)};
  std::vector<Op> add{assign_add(left, constant(g, 10.0f)),
                      assign_add(right, left.value() + 10.0f)};
  std::vector<Output> reads{left.value(), right.value()};

  World world(seed);
  Random random(seed);
  Client client(world.master(), 1, g);
  client.init().compile("take", {taken}, take).compile("add", {}, add).compile("put", {}, {put});
  client.compile("read", reads, {});
  proceed(world, {&client});
  auto read = [&](float a, float b) {
    client.run("read");
    proceed(world, {&client});
    CHECK(client.fetched().back()[0].item<float>() == a);
    CHECK(client.fetched().back()[1].item<float>() == b);
  };
  client.try_run("add", 1s);
  read(10, 10);
  for (int i = 0; i < 2; ++i) {
    Instant timeout = draw_timeout(random), before = world.now();
    client.try_run("take", timeout);
    proceed(world, {&client});
    CHECK(client.ended().back().code() == Code::deadline_exceeded);
    CHECK(client.ended().back().text().find("deadline") != std::string::npos);
    CHECK(world.now() - before >= timeout);
    // Deliveries that happen to come before the client looks are all that adds to it.
    CHECK(world.now() - before < timeout + 20ms);
    read(10, 10);
  }
  // Neither half is left behind: the element is for the next one, and there is only that.
  client.run("put").try_run("take", 1s);
  read(11, 25);
  CHECK(client.ended()[client.ended().size() - 2].ok());
  client.try_run("take", 1ms);
  read(11, 25);
  DeadlineOutcome outcome;
  note(client.close(), outcome);
  proceed(world, {&client});
  CHECK(outcome.fired == 3);
  end(world, outcome);
  return outcome;
}

// Two sessions at the two ends of a queue, each giving up now and then; deadlines pass wherever
// their runs happen to be. What is put is counted in the transaction that puts it, what is taken in
// the one that takes it.
DeadlineOutcome race_deadline(std::uint64_t seed) {
  constexpr int kRuns = 8;
  const FIFOQueueOptions between{.capacity = 2, .shared_name = "between"};
  Graph gives, takes;
  Variable given = variable_on(gives, kTask0, "given", Tensor::scalar(1.0f));
  std::vector<Op> put{enqueue(queue_on(gives, kTask1, between), {given.value() * 10.0f}),
                      assign_add(given, constant(gives, 1.0f))};
  Variable taken = variable_on(takes, kTask0, "taken", Tensor::scalar(0.0f));
  Output element = take_from(queue_on(takes, kTask1, between));
  Op count = assign_add(taken, constant(takes, 1.0f));

  World world(seed);
  Random random(seed);
  Client giver(world.master(), 1, gives), taker(world.master(), 2, takes);
  giver.init().compile("put", {}, put).compile("read", {given.value()}, {});
  taker.init().compile("take", {element}, {count}).compile("read", {taken.value()}, {});
  for (int i = 0; i < kRuns; ++i) {
    giver.try_run("put", draw_timeout(random));
    taker.try_run("take", draw_timeout(random));
  }
  proceed(world, {&giver, &taker});
  auto committed = [](const Client& client) {
    return int(std::count_if(client.ended().begin() + 1, client.ended().end(),  // init
                             [](const Status& status) { return status.ok(); }));
  };
  const int put_runs = committed(giver), left = put_runs - committed(taker);
  REQUIRE(left >= 0);
  taker.run("take", left).run("read");
  giver.run("read");
  proceed(world, {&giver, &taker});
  CHECK(giver.fetched().back()[0].item<float>() == float(put_runs + 1));
  CHECK(taker.fetched().back()[0].item<float>() == float(put_runs));
  float next = 10;
  for (std::size_t i = 1; i + 1 < taker.fetched().size(); ++i) {
    if (!taker.ended()[i].ok()) continue;
    CHECK(taker.fetched()[i][0].item<float>() == next);
    next += 10;
  }
  DeadlineOutcome outcome;
  note(giver.close(), outcome);
  note(taker.close(), outcome);
  proceed(world, {&giver, &taker});
  end(world, outcome);
  return outcome;
}

// Runs on the fast path, where the last write carries the decision: what a client is told is what
// happened.
DeadlineOutcome fast(std::uint64_t seed) {
  constexpr int kRuns = 12;
  Graph g;
  Variable v = variable_on(g, kTask0, "v", Tensor::scalar(0.0f));
  Op add = assign_add(v, constant(g, 1.0f));

  World world(seed);
  Random random(seed);
  Client client(world.master(), 1, g);
  client.init().compile("add", {v.value()}, {add}).compile("read", {v.value()}, {});
  float sum = 0;
  for (int i = 0; i < kRuns; ++i) {
    client.try_run("add", draw_timeout(random)).run("read");
    proceed(world, {&client});
    const std::size_t tried = client.ended().size() - 2;
    if (client.ended()[tried].ok()) {
      const Tensor& before = client.fetched()[tried][0];
      REQUIRE(before.defined());
      CHECK(before.item<float>() == sum);
      sum += 1;
    }
    CHECK(client.fetched().back()[0].item<float>() == sum);
  }
  DeadlineOutcome outcome;
  note(client.close(), outcome);
  proceed(world, {&client});
  end(world, outcome);
  return outcome;
}

void under(std::uint64_t seeds, DeadlineOutcome (*scenario)(std::uint64_t)) {
  std::uint64_t passed = 0, fired = 0, events = 0;
  for (std::uint64_t seed = 0; seed < seeds; ++seed) {
    CAPTURE(seed);
    DeadlineOutcome outcome = scenario(seed);
    passed += std::uint64_t(outcome.passed);
    fired += std::uint64_t(outcome.fired);
    events += outcome.events;
    if (seed % 20 == 0) CHECK((scenario(seed) == outcome));
  }
  CHECK(passed > seeds);
  CHECK(fired > seeds);
  MESSAGE("seeds: ", seeds, ", runs: ", passed, ", deadlines passed: ", fired,
          ", events: ", events);
}

}  // namespace

TEST_CASE("a deadline of a blocked run fires in virtual time, and leaves nothing behind") {
  under(schedules(40), fire);
}

TEST_CASE("deadlines at both ends of a queue lose and double nothing, under every schedule") {
  under(schedules(40), race_deadline);
}

TEST_CASE("a run on the fast path keeps its deadline or is told that it is over") {
  under(schedules(40), fast);
}

TEST_CASE("deadlines under every schedule, long [slow]") {
  for (auto scenario : {fire, race_deadline, fast}) under(schedules(3000), scenario);
}
