// Sessions in a program that has a CAF system of its own.
#include <doctest/doctest.h>

#include <caf/actor_system.hpp>
#include <caf/actor_system_config.hpp>
#include <caf/event_based_actor.hpp>
#include <caf/scoped_actor.hpp>
#include <memory>
#include <optional>
#include <thread>

#include "actors/runtime/residents.hpp"
#include "tests/actors/support/sessions.hpp"

using namespace troupe;
using namespace troupe::test;

namespace {

// As a program would make it that has never heard of us.
struct Program {
  caf::actor_system_config config;
  std::optional<caf::actor_system> system;

  Program() {
    config.set("scheduler.policy", caf::atom("sharing"));
    config.set("scheduler.max-threads", std::size_t{2});
    system.emplace(config);
  }
  // An actor of the program's own is made, works and ends.
  bool usable() {
    caf::actor adder =
        system->spawn([] { return caf::behavior{[](int a, int b) { return a + b; }}; });
    caf::scoped_actor self{*system};
    int sum = 0;
    self->request(adder, std::chrono::seconds(20), 2, 3)
        .receive([&](int x) { sum = x; }, [](const caf::error&) {});
    self->send_exit(adder, caf::exit_reason::user_shutdown);
    self->wait_for(adder);
    return sum == 5;
  }
  // Actors of sessions.
  std::size_t residents() {
    const auto found = Residents::find(*system);
    return found ? found->actors() : 0;
  }
  // Whether no actor is left; one that has been told to end may need a moment.
  bool empty() {
    auto until = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    auto left = [&] { return system->registry().running() + residents(); };
    while (left() > 0 && std::chrono::steady_clock::now() < until) std::this_thread::yield();
    return left() == 0;
  }
};

// A counter that steps raise by one.
struct Counter {
  Graph g;
  Variable v = variable(g, "v", Tensor::scalar(0.0f));
  Op add = assign_add(v, constant(g, 1.0f));

  float value(Session& s) { return s.run({v.value()})[0].item<float>(); }
};

}  // namespace

TEST_CASE("a session lives in the program's actor system and leaves it usable") {
  Program program;
  Counter counter;
  {
    Session s(counter.g, *program.system, one_thread());
    CHECK(program.residents() > 0);
    s.init();
    auto step = s.compile({}, {counter.add});
    for (int i = 0; i < 20; ++i) step.run(std::vector<Tensor>{});
    CHECK(counter.value(s) == 20);
    CHECK(program.usable());
    s.close();
    CHECK(program.empty());
    CHECK(program.usable());
    CHECK(s.try_run({counter.v.value()}).status().code() == Code::failed_precondition);
  }
  CHECK(program.empty());
  CHECK(program.usable());
}

TEST_CASE("two sessions on one actor system do not see each other") {
  Program program;
  Counter a, b;
  auto first = std::make_unique<Session>(a.g, *program.system, one_thread());
  Session second(b.g, *program.system, one_thread());
  first->init();
  second.init();
  auto client = [](Session& s, Counter& c, int times) {
    auto step = s.compile({}, {c.add});
    for (int i = 0; i < times; ++i) step.run(std::vector<Tensor>{});
  };
  std::thread one([&] { client(*first, a, 30); }), two([&] { client(second, b, 50); });
  one.join();
  two.join();
  CHECK(a.value(*first) == 30);
  CHECK(b.value(second) == 50);
  first.reset();  // in the order of their making, not the other way round
  client(second, b, 1);
  CHECK(b.value(second) == 51);
  CHECK(program.usable());
  second.close();
  CHECK(program.empty());
}

TEST_CASE("sessions come and go on one actor system") {
  Program program;
  for (int i = 0; i < 10; ++i) {
    Counter counter;
    Session s(counter.g, *program.system, one_thread());
    s.init();
    s.run({}, {counter.add});
    CHECK(counter.value(s) == 1);  // nothing of the one before
  }
  CHECK(program.empty());
}

TEST_CASE("a program's session is dropped while a run waits") {
  Program program;
  Graph g;
  Output q = fifo_queue(g, {DType::f32});
  Output out = dequeue(q, {DType::f32})[0];
  std::optional<PendingRun> waiting;
  std::optional<CompiledStep> step;
  {
    Session s(g, *program.system, one_thread());
    step = s.compile({out});
    waiting = step->start();
  }
  CHECK(waiting->try_get().status().code() == Code::cancelled);
  CHECK(program.empty());
  CHECK(program.usable());
  // Steps and runs may outlive their session; they say that it is closed.
  CHECK(step->try_run().status().code() == Code::failed_precondition);
  CHECK(step->start().try_get().status().code() == Code::failed_precondition);
  waiting->cancel();
}

TEST_CASE("an actor system ends while its closed session is still there") {
  Counter counter;
  std::optional<Session> s;
  {
    Program program;
    s.emplace(counter.g, *program.system, one_thread());
    s->init();
    s->close();
  }
  CHECK(s->try_run({counter.v.value()}).status().code() == Code::failed_precondition);
  CHECK(s->describe().empty());
  CHECK(s->memory().empty());
  CHECK(s->try_variables().status().code() == Code::failed_precondition);
}
