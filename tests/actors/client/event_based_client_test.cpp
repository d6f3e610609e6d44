// Sessions that event-based actors of the program use, and systems that end with a session open.
#include <doctest/doctest.h>

#include <caf/actor_system.hpp>
#include <caf/actor_system_config.hpp>
#include <caf/event_based_actor.hpp>
#include <caf/send.hpp>
#include <functional>
#include <future>
#include <memory>
#include <optional>
#include <thread>
#include <vector>

#include "actors/runtime/residents.hpp"
#include "tests/actors/support/sessions.hpp"

using namespace troupe;
using namespace troupe::test;

namespace {

constexpr std::size_t kThreads = 2;

struct ActorProgram {
  caf::actor_system_config config;
  std::optional<caf::actor_system> system;

  explicit ActorProgram(caf::atom_value policy = caf::atom("sharing")) {
    config.set("scheduler.policy", policy);
    config.set("scheduler.max-threads", kThreads);
    // Whoever makes a system keeps it from ending as long as it lives.
    std::thread([&] { system.emplace(config); }).join();
  }
  // `work` in a handler of an event-based actor.
  template <caf::spawn_options Options = caf::no_spawn_options>
  std::future<void> in_actor(std::function<void()> work) {
    auto done = std::make_shared<std::promise<void>>();
    std::future<void> future = done->get_future();
    std::thread([&] {
      system->spawn<Options>([work, done](caf::event_based_actor*) {
        work();
        done->set_value();
      });
    }).join();
    return future;
  }
};

struct CountingGraph {
  Graph g;
  Variable v = variable(g, "v", Tensor::scalar(0.0f));
  Op add = assign_add(v, constant(g, 1.0f));
};

void refused(const Status& status, std::string_view method) {
  CAPTURE(status.text());
  CHECK(status.code() == Code::failed_precondition);
  CHECK(status.text().find(std::string(method) + " was called from an event-based actor") !=
        std::string::npos);
  CHECK(status.text().find("blocking actor") != std::string::npos);
}
template <class Call>
Status thrown(Call call) {
  try {
    call();
  } catch (const Error& error) {
    return error.status();
  }
  return ok_status();
}

}  // namespace

TEST_CASE("methods that wait are refused in handlers of event-based actors") {
  for (auto policy : {caf::atom("sharing"), caf::atom("stealing")}) {
    ActorProgram program(policy);
    CountingGraph c;
    Session s(c.g, *program.system, one_thread());
    s.init();
    const CompiledStep step = s.compile({}, {c.add});
    std::optional<PendingRun> started;
    // As many at once as there are threads: they would wait for ever.
    std::vector<std::future<void>> actors;
    for (std::size_t i = 0; i < kThreads; ++i)
      actors.push_back(program.in_actor([&] {
        refused(step.try_run().status(), "CompiledStep::run");
        refused(s.try_run({}, {c.add}).status(), "Session::run");
      }));
    for (auto& actor : actors) actor.get();
    program
        .in_actor([&] {
          refused(s.try_compile({}, {c.add}).status(), "Session::compile");
          refused(s.try_init(), "Session::init");
          refused(s.try_variables().status(), "Session::variables");
          refused(s.try_state().status(), "Session::try_state");
          refused(s.try_save("never"), "Session::save");
          refused(s.try_restore("never"), "Session::restore");
          refused(s.try_restore({{"v", Tensor::scalar(1.0f)}}, 1), "Session::restore");
          refused(s.try_reset(), "Session::reset");
          refused(s.try_start_trace(), "Session::try_start_trace");
          refused(s.try_stop_trace().status(), "Session::try_stop_trace");
          refused(s.try_close(), "Session::close");
          refused(step.try_rewind(), "CompiledStep::rewind");
          refused(step.try_next().status(), "CompiledStep::run");
          refused(thrown([&] { s.describe(); }), "Session::describe");
          refused(thrown([&] { s.memory(); }), "Session::memory");
          refused(thrown([&] { Session(c.g, *program.system, one_thread()); }), "Session::Session");
          started = step.start();
        })
        .get();
    // What does not wait is allowed, and so is waiting elsewhere.
    CHECK(started->try_get().ok());
    program.in_actor([&] { CHECK(started->try_get().ok()); }).get();
    program.in_actor<caf::detached>([&] { CHECK(step.try_run().ok()); }).get();
    CHECK(s.run({c.v.value()})[0].item<float>() == 2);
  }
}

TEST_CASE("an event-based actor of another system may wait for a session") {
  ActorProgram program, other;
  CountingGraph c;
  Session s(c.g, *program.system, one_thread());
  s.init();
  other.in_actor([&] { CHECK(s.try_run({}, {c.add}).ok()); }).get();
  CHECK(s.run({c.v.value()})[0].item<float>() == 1);
}

TEST_CASE("a session that an event-based actor destroys is closed") {
  ActorProgram program;
  CountingGraph c;
  auto s = std::make_unique<Session>(c.g, *program.system, one_thread());
  s->init();
  const CompiledStep step = s->compile({}, {c.add});
  program.in_actor([&] { s.reset(); }).get();
  program.system.reset();  // waits for it
  CHECK(step.try_run().status().code() == Code::failed_precondition);
}

TEST_CASE("an actor system that ends closes the sessions that are open in it") {
  for (auto policy : {caf::atom("sharing"), caf::atom("stealing")}) {
    ActorProgram program(policy);
    CountingGraph c;
    Graph g;
    Output q = fifo_queue(g, {DType::f32});
    Session s(c.g, *program.system, one_thread()), waits(g, *program.system, one_thread());
    s.init();
    s.run({}, {c.add});
    PendingRun run = waits.compile({dequeue(q, {DType::f32})[0]}).start();
    // An actor of the program's that has not ended yet still has the session.
    std::promise<void> ending;
    auto last = program.in_actor<caf::detached>([&] {
      ending.get_future().wait();
      CHECK(s.try_run({}, {c.add}).ok());
    });
    std::thread end([&] { program.system.reset(); });
    ending.set_value();
    last.get();
    end.join();
    CHECK(run.try_get().status().code() == Code::cancelled);
    CHECK(s.try_run({}, {c.add}).status().code() == Code::failed_precondition);
    CHECK(s.try_close().ok());
  }
}

TEST_CASE("an actor system with a job of several processes ends while its session is open") {
  ActorProgram program;
  CountingGraph c;
  TcpWorkers workers(2);
  Session s(c.g, *program.system, workers.cluster());
  s.init();
  s.run({}, {c.add});
  program.system.reset();
  CHECK(s.try_run({}, {c.add}).status().code() == Code::failed_precondition);
}
