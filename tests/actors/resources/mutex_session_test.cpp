// Mutexes as clients use them: through sessions, from several threads and processes.
#include <doctest/doctest.h>

#include <thread>

#include "ops/api/control.hpp"
#include "ops/api/math.hpp"
#include "serialization/checkpoint.hpp"
#include "tests/actors/support/sessions.hpp"
#include "tests/serialization/temporary.hpp"

using namespace troupe;
using namespace troupe::test;
using namespace std::chrono_literals;

namespace {

Output mutex_on(Graph& g, const char* device, const char* name = "m") {
  auto there = g.with_device(device);
  return mutex(g, {.shared_name = name});
}

// A counter that runs read, add to and assign, holding a mutex.
struct LockedCounter {
  Variable counter;
  Op acquire, write, release;

  LockedCounter(Graph& g, const Place& place)
      : counter(variable_on(g, place.first, "counter", Tensor::scalar(0.f))) {
    const Output m = mutex_on(g, place.second);
    acquire = mutex_acquire(m);
    auto locked = g.with_control({acquire});
    write = assign(counter, counter + 1.0f);
    auto written = g.with_control({write});
    release = mutex_release(m);
  }
};

// "conflicts 3" of what the master says of itself.
int runs_done_again(Session& s) {
  for (const std::string& line : s.describe())
    if (const std::size_t at = line.find("conflicts "); at != std::string::npos)
      return std::stoi(line.substr(at + 10));
  FAIL("the master does not say how many runs were done again");
  return -1;
}

Wait until_locked_out(Session& s) {
  for (;;)
    for (const Wait& wait : s.waits())
      if (wait.op == "MutexAcquire") return wait;
}
// Until another run has the mutex, of two that were begun one after the other either may be first.
void until_held(const CompiledStep& step) {
  for (;;)
    if (const Status status = step.try_run({}, {.timeout = 50ms}).status();
        status.text().find("for mutex 'm', which step ") != std::string::npos)
      return;
}

}  // namespace

TEST_CASE("16 clients that lock, read, add and assign lose nothing, and nothing is done again") {
  constexpr int kClients = 16, kEach = 20;
  for (const Place& place : kPlaces) {
    CAPTURE(place.name);
    Graph g;
    LockedCounter c(g, place);
    PlacedSession s(g, place);
    s->init();
    const CompiledStep step = s->compile({c.counter}, {c.release});
    std::vector<std::thread> clients;
    std::vector<std::vector<float>> seen(kClients);
    for (auto& mine : seen)
      clients.emplace_back([&] {
        for (int i = 0; i < kEach; ++i) mine.push_back(step.run()[0].item<float>());
      });
    for (std::thread& client : clients) client.join();
    CHECK(s->run({c.counter})[0].item<float>() == kClients * kEach);
    CHECK(runs_done_again(*s) == 0);
    // Each value was seen by one run.
    std::vector<float> all;
    for (const auto& mine : seen) all.insert(all.end(), mine.begin(), mine.end());
    std::sort(all.begin(), all.end());
    for (std::size_t i = 0; i < all.size(); ++i) CHECK(all[i] == float(i));
  }
}

TEST_CASE("a run waits for a mutex, which it names with node and line, until the holder is over") {
  for (const Place& place : kPlaces) {
    CAPTURE(place.name);
    Graph g;
    Gate gate(g, place.second);
    const Output m = mutex_on(g, place.second);
    const Op acquire = mutex_acquire(m);
    Output held;
    {
      auto locked = g.with_control({acquire});
      held = identity(gate.taken);
    }
    const Variable v = variable_on(g, place.first, "v", Tensor::scalar(1.f));
    const Op change = assign(v, gate.taken + 1.0f);
    Output late;
    {
      auto locked = g.with_control({acquire});
      late = v + 0.0f;
    }
    PlacedSession s(g, place);
    s->init();
    PendingRun holder = s->compile({held}, {change}).start();
    const CompiledStep step = s->compile({late});
    until_held(step);
    PendingRun waits = step.start({}, {.timeout = 1h});
    const Wait wait = until_locked_out(*s);
    CHECK(wait.what.starts_with("mutex 'm', which step "));
    CHECK(wait.what.ends_with(" holds"));
    CHECK(wait.site.find("mutex_session_test.cpp:") != std::string::npos);
    CHECK(wait.left);
    const Status status = step.try_run({}, {.timeout = 50ms}).status();
    says(status, Code::deadline_exceeded, "for mutex 'm'");
    says(status, Code::deadline_exceeded, "(MutexAcquire) at ");
    PendingRun cancelled = step.start();
    cancelled.cancel();
    CHECK(cancelled.try_get().status().code() == Code::cancelled);
    s->run({}, {gate.put}, {{gate.fed, Tensor::scalar(7.f)}});
    CHECK(holder.get()[0].item<float>() == 7);
    CHECK(waits.get()[0].item<float>() == 8);  // as of after the holder
  }
}

TEST_CASE("a mutex is free again however its holder ends") {
  Graph g;
  const Output m = mutex_on(g, kTask0);
  const Op acquire = mutex_acquire(m);
  Gate gate(g, kTask0);
  Output index = placeholder<std::int64_t>(g, {1}, "index");
  auto locked = g.with_control({acquire});
  Output row = gather(constant(g, Tensor::of<float>({2}, {0, 0})), index);
  Output waits = identity(gate.taken);
  Session s(g, one_thread());
  const Feed bad{index, Tensor::of<std::int64_t>({1}, {9})};
  const Feed good{index, Tensor::of<std::int64_t>({1}, {1})};
  CHECK(s.try_run({row}, {}, {bad}).status().code() == Code::invalid_argument);
  CHECK(s.try_run({row}, {}, {good}).ok());
  CHECK(s.try_run({waits}, {}, {}, {.timeout = 20ms}).status().code() == Code::deadline_exceeded);
  CHECK(s.try_run({row}, {}, {good}).ok());
  PendingRun run = s.compile({waits}).start();
  run.cancel();
  CHECK_FALSE(run.try_get().ok());
  CHECK(s.try_run({row}, {}, {good}).ok());
}

TEST_CASE("a run that acquires twice, or releases what it does not hold, is told where") {
  for (const Place& place : kPlaces) {
    CAPTURE(place.name);
    Graph g;
    const Output m = mutex_on(g, place.second);
    const Op first = mutex_acquire(m);
    Op second, release;
    {
      auto after = g.with_control({first});
      second = mutex_acquire(m);
      release = mutex_release(m);
    }
    Op again;
    {
      auto after = g.with_control({release});
      again = mutex_acquire(m);
    }
    const Op alone = mutex_release(m);
    PlacedSession s(g, place);
    const Status twice = s->try_run({}, {second}).status();
    says(twice, Code::failed_precondition, "the run holds mutex 'm' already");
    says(twice, Code::failed_precondition, "(MutexAcquire");
    says(twice, Code::failed_precondition, "mutex_session_test.cpp:");
    const Status never = s->try_run({}, {alone}).status();
    says(never, Code::failed_precondition, "the run does not hold mutex 'm'");
    says(never, Code::failed_precondition, "(MutexRelease");
    says(never, Code::failed_precondition, "mutex_session_test.cpp:");
    CHECK(s->try_run({}, {again}).ok());
    CHECK(s->try_run({}, {again}).ok());
  }
}

TEST_CASE("mutexes stand in branches, loops and functions") {
  Graph g;
  const Output m = mutex_on(g, kTask0, "m"), other = mutex_on(g, kTask0, "other");
  const Output x = placeholder<float>(g, {}, "x");
  const Variable v = variable_on(g, kTask0, "v", Tensor::scalar(0.f));
  // In each iteration; else the second one would fail.
  const Output loop = while_loop(
      constant(g, 0), [](Output i) { return i < 4; },
      [&](Output i) {
        mutex_acquire(m);
        assign_add(v, cast<float>(i));
        mutex_release(m);
        return i + 1;
      });
  const Output branch = cond(
      x > 0.0f,
      [&] {
        mutex_acquire(other);
        return x * 2.0f;
      },
      [&] { return x; });
  const Output twice = while_loop(
      constant(g, 0), [](Output i) { return i < 2; },
      [&](Output i) {
        mutex_acquire(m);
        return i + 1;
      });
  Gate gate(g, kTask0);
  Session s(g, one_thread());
  s.init();
  CHECK(s.run({loop})[0].item<std::int32_t>() == 4);
  CHECK(s.run({v})[0].item<float>() == 6);
  for (float fed : {1.f, -1.f})
    CHECK(s.run({branch}, {}, {{x, Tensor::scalar(fed)}})[0].item<float>() ==
          (fed > 0 ? 2 * fed : fed));
  says(s.try_run({twice}).status(), Code::failed_precondition, "the run holds mutex 'm' already");
  // What a branch may acquire, the run holds whether or not it takes that branch.
  Graph g2;
  const Output m2 = mutex_on(g2, kTask0), y = placeholder<float>(g2, {}, "y");
  Gate gate2(g2, kTask0);
  const Output waits = cond(
      y > 0.0f,
      [&] {
        mutex_acquire(m2);
        return y;
      },
      [&] { return y + gate2.taken; });
  const Op acquire = mutex_acquire(m2);
  Session s2(g2, one_thread());
  PendingRun holder = s2.compile({waits}, {}, {y}).start({Tensor::scalar(-1.f)});
  PendingRun second = s2.compile({}, {acquire}).start();
  CHECK(until_locked_out(s2).what.starts_with("mutex 'm', which"));
  s2.run({}, {gate2.put}, {{gate2.fed, Tensor::scalar(5.f)}});
  CHECK(holder.get()[0].item<float>() == 4);
  CHECK(second.try_get().ok());
}

TEST_CASE("a loop over two devices acquires and releases in each iteration") {
  Cluster cluster = one_thread();
  cluster.devices = {"CPU", "CPU"};
  for (const char* where : {"/cpu:0", "/cpu:1"}) {
    Graph g;
    const Output m = mutex_on(g, where);
    auto leader = g.with_device("/cpu:0");
    const Output x = while_loop(
        constant(g, 0.0f), [](Output x) { return x < 12.0f; },
        [&](Output x) {
          Output next;
          {
            auto there = g.with_device("/cpu:1");
            next = x + 1.0f;
          }
          mutex_acquire(m);
          mutex_release(m);
          return next;
        });
    Session s(g, cluster);
    CHECK(s.run({x})[0].item<float>() == 12);
  }
}

TEST_CASE("a job is saved while a run holds a mutex, which the saved one leaves out") {
  const troupe::testing::TemporaryDir dir;
  const auto build = [](Graph& g) {
    LockedCounter c(g, kPlaces[0]);
    return c;
  };
  {
    Graph g;
    LockedCounter c = build(g);
    Gate gate(g, kTask0);
    Output held;
    {
      auto locked = g.with_control({c.acquire});
      held = identity(gate.taken);
    }
    Session s(g, one_thread());
    s.init();
    s.run({}, {c.release});
    PendingRun holder = s.compile({held}).start();
    PendingRun waits = s.compile({}, {c.release}).start();
    until_locked_out(s);
    s.save_job(dir.path("job"));
    s.run({}, {gate.put}, {{gate.fed, Tensor::scalar(7.f)}});
    CHECK(holder.try_get().ok());
    CHECK(waits.try_get().ok());
  }
  Graph g;
  LockedCounter c = build(g);
  Gate gate(g, kTask0);
  Session s(g, one_thread());
  s.restore_job(dir.path("job"));
  s.run({}, {c.release});
  CHECK(s.run({c.counter})[0].item<float>() == 2);
  const Output whole = mutex_on(g, kTask0);
  const Op save = node(g, kTask0, "SaveResource", {whole});
  CHECK(s.try_run({save.output()}).status().code() == Code::unimplemented);
}

TEST_CASE("replicas of a step hold its mutex together") {
  Graph g;
  const Output m = mutex_on(g, kTask0);
  const Op acquire = mutex_acquire(m);
  auto locked = g.with_control({acquire});
  const Output x = random_standard_normal(g, {4});
  const Variable v = variable_on(g, kTask0, "v", Tensor::scalar(0.f));
  const Op write = assign_add(v, mean(x));
  Session s(g, one_thread());
  s.init();
  const CompiledStep step = s.compile({}, {write}, {}, {.replicas = 2});
  for (int i = 0; i < 3; ++i) CHECK(step.try_run().ok());
}
