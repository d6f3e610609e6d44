// Event-based actors that use a session.
#include "actors/client/session_actor.hpp"

#include <doctest/doctest.h>
#include <unistd.h>

#include <atomic>
#include <caf/actor_system_config.hpp>
#include <caf/event_based_actor.hpp>
#include <caf/scoped_actor.hpp>
#include <caf/send.hpp>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <future>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "apps/troupe.hpp"
#include "tests/actors/support/sessions.hpp"
#include "tests/apps/job_processes.hpp"
#include "tests/contains.hpp"
#include "tests/serialization/temporary.hpp"

using namespace troupe;
using namespace troupe::test;
using namespace std::chrono_literals;
using troupe::testing::TemporaryDir;

namespace {

constexpr std::size_t kSchedulerThreads = 2;

struct ServedGraph {
  caf::actor_system_config config;
  std::optional<caf::actor_system> system;
  Graph g;
  Variable v = variable(g, "v", Tensor::scalar(0.0f));
  Output x = placeholder(g, DType::f32, Shape{});
  Op add = assign_add(v, x);
  Output twice_of = x * 2.0f;
  std::shared_ptr<Session> session;
  CompiledStep step, twice;
  caf::actor runs;

  explicit ServedGraph(const Cluster& cluster = one_thread()) {
    config.set("scheduler.policy", caf::atom("sharing"));
    config.set("scheduler.max-threads", kSchedulerThreads);
    std::thread([&] {
      system.emplace(config);
      session = std::make_shared<Session>(g, *system, cluster);
      session->init();
      step = session->compile({}, {add}, {x});
      twice = session->compile({twice_of}, {}, {x});
      runs = value_or_throw(spawn_session_actor(*system, session));
    }).join();
  }
  ~ServedGraph() {
    caf::anon_send_exit(runs, caf::exit_reason::user_shutdown);
    runs = nullptr;
  }
  float value() { return session->run({v.value()})[0].item<float>(); }
};

std::vector<Tensor> feed(float value) { return {Tensor::scalar(value)}; }

// What somebody was told, in order.
struct Heard {
  std::mutex mutex;
  std::vector<SessionEvent> events;
  std::promise<void> ended;

  void hear(const SessionEvent& event) {
    std::lock_guard lock(mutex);
    events.push_back(event);
    if (event.kind == SessionEvent::Kind::ended) ended.set_value();
  }
};

caf::actor watcher_of(caf::actor_system& system, const std::shared_ptr<Heard>& heard) {
  return system.spawn([heard](caf::event_based_actor*) {
    return caf::behavior{[heard](const SessionEvent& event) { heard->hear(event); }};
  });
}

}  // namespace

TEST_CASE("more event-based actors than threads ask for runs, and all are answered") {
  ServedGraph s;
  static constexpr int kActors = 4 * kSchedulerThreads, kRuns = 25;
  std::vector<std::future<float>> sums;
  std::thread([&] {
    for (int i = 0; i < kActors; ++i) {
      auto sum = std::make_shared<std::promise<float>>();
      sums.push_back(sum->get_future());
      s.system->spawn([&s, sum](caf::event_based_actor* self) {
        auto left = std::make_shared<int>(kRuns);
        auto total = std::make_shared<float>(0.0f);
        for (int n = 0; n < kRuns; ++n)
          self->request(s.runs, caf::infinite, AskRun{n % 2 ? s.step : s.twice, feed(1)})
              .then([left, total, sum](const RunResult& result) {
                if (result.status.ok() && !result.fetches.empty())
                  *total += result.fetches[0].item<float>();
                if (result.status.ok() && result.committed > 0) *total += 100;
                if (--*left == 0) sum->set_value(*total);
              });
      });
    }
  }).join();
  for (auto& sum : sums) CHECK(sum.get() == 13 * 2 + 12 * 100);
  CHECK(s.value() == kActors * 12);
}

TEST_CASE("an actor hears of a failed run, a wrong feed and an empty step as of a result") {
  ServedGraph s;
  std::thread([&] {
    caf::scoped_actor self(*s.system);
    const auto ask = [&](AskRun run) {
      Status status;
      self->request(s.runs, caf::infinite, std::move(run))
          .receive([&](const RunResult& result) { status = result.status; },
                   [&](const caf::error&) { status = internal_error("an error of CAF's"); });
      return status;
    };
    CHECK(ask({s.step, {}}).code() == Code::invalid_argument);
    CHECK(ask({}).code() == Code::failed_precondition);
    CHECK(ask({s.step, feed(1), {.timeout = std::chrono::nanoseconds(0)}}).code() ==
          Code::deadline_exceeded);
    CHECK(ask({s.step, feed(1), {.durable = true}}).code() == Code::failed_precondition);
    CHECK(ask({s.step, feed(1)}).ok());
  }).join();
  CHECK(spawn_session_actor(*s.system, nullptr).status().code() == Code::invalid_argument);
}

TEST_CASE("a step that was unloaded is compiled again for an actor's run") {
  ServedGraph s;
  CompiledStep many;
  for (int i = 0; i < 80; ++i) many = s.session->compile({s.x + float(i)}, {}, {s.x});
  PendingRun alone = s.twice.start(feed(2));
  CHECK(!alone.try_get().ok());
  CHECK(alone.unloaded());
  std::thread([&] {
    caf::scoped_actor self(*s.system);
    float answer = 0;
    self->request(s.runs, caf::infinite, AskRun{s.twice, feed(21)})
        .receive(
            [&](const RunResult& result) {
              CHECK_MESSAGE(result.status.ok(), result.status.text());
              if (result.status.ok()) answer = result.fetches.at(0).item<float>();
            },
            [&](const caf::error&) {});
    CHECK(answer == 42);
  }).join();
  CHECK_THROWS_AS(CompiledStep().load(), Error);
}

TEST_CASE("a run that an actor asks for has its timeout once, also if a worker was lost") {
  std::atomic<std::int64_t> hold{0};  // how long the next start of a runtime takes, in ns
  Cluster cluster = one_thread();
  cluster.workers = 1;
  cluster.stop = [&hold] {
    const auto until =
        std::chrono::steady_clock::now() + std::chrono::nanoseconds(hold.exchange(0));
    while (std::chrono::steady_clock::now() < until) std::this_thread::yield();
    return false;
  };
  ServedGraph s(cluster);
  s.session->keep();
  const auto workers = processes_of(getpid());
  REQUIRE(workers.size() == 1);
  kill(workers[0], SIGKILL);
  // More time for a machine that was too slow to get as far as the loss within it.
  for (std::chrono::nanoseconds time = 250ms; s.session->recoveries() == 0; time *= 2) {
    hold = time.count();
    std::thread([&] {
      caf::scoped_actor self(*s.system);
      self->request(s.runs, caf::infinite, AskRun{s.twice, feed(1), {.timeout = time}})
          .receive(
              [](const RunResult& result) {
                CHECK(result.status.code() == Code::deadline_exceeded);
              },
              [](const caf::error&) { CHECK(false); });
    }).join();
  }
  CHECK(s.session->run({s.twice_of}, {}, {{s.x, Tensor::scalar(2.0f)}})[0].item<float>() == 4);
}

TEST_CASE("an actor that watches a session hears of its commits and its end") {
  ServedGraph s;
  auto heard = std::make_shared<Heard>();
  std::promise<caf::error> down;
  std::thread([&] {
    const caf::actor watcher = watcher_of(*s.system, heard);
    caf::anon_send(s.runs, WatchSession{watcher});
    // Monitoring keeps nobody alive.
    const caf::actor monitor = s.system->spawn([&](caf::event_based_actor* self) {
      self->monitor(s.runs);
      self->set_down_handler([self, &down](const caf::down_msg& message) {
        down.set_value(message.reason);
        self->quit();
      });
      // Behind the watching.
      self->request(s.runs, caf::infinite, AskRun{s.step, feed(1)}).then([&](const RunResult&) {
        std::thread([&] { s.session->close(); }).detach();
      });
      return caf::behavior{[](int) {}};
    });
    heard->ended.get_future().wait();
    CHECK(!down.get_future().get());  // a normal end
    caf::anon_send_exit(watcher, caf::exit_reason::user_shutdown);
  }).join();
  std::lock_guard lock(heard->mutex);
  REQUIRE(heard->events.size() >= 2);
  CHECK(heard->events.front().kind == SessionEvent::Kind::committed);
  CHECK(heard->events.front().committed == 2);
  CHECK(heard->events.back().status.ok());
}

TEST_CASE("commits that follow each other quickly are told with the last one") {
  ServedGraph s;
  auto heard = std::make_shared<Heard>();
  std::thread([&] {
    const caf::actor watcher = watcher_of(*s.system, heard);
    caf::anon_send(s.runs, WatchSession{watcher});
    caf::scoped_actor self(*s.system);
    self->request(s.runs, caf::infinite, AskRun{s.twice, feed(1)})  // it watches from now on
        .receive([](const RunResult&) {}, [](const caf::error&) {});
    std::vector<PendingRun> runs;
    for (int i = 0; i < 500; ++i) runs.push_back(s.step.start(feed(1)));
    for (PendingRun& run : runs) run.get();
    s.session->close();
    heard->ended.get_future().wait();
    caf::anon_send_exit(watcher, caf::exit_reason::user_shutdown);
  }).join();
  std::lock_guard lock(heard->mutex);
  CommitNumber last = 0;
  for (const SessionEvent& event : heard->events) {
    if (event.kind != SessionEvent::Kind::committed) continue;
    CHECK(event.committed >= last);
    last = event.committed;
  }
  CHECK(last == 501);
}

TEST_CASE("an actor's durable run is answered when a checkpoint has it") {
  const TemporaryDir dir;
  ServedGraph s;
  JobOptions options;
  options.dir = dir.path("job");
  options.checkpoint_seconds = JobOptions::kNever;
  options.signals = false;
  std::promise<Job*> ready;
  std::thread server([&] {
    Job job(*s.session, options);
    ready.set_value(&job);
    job.serve();
  });
  Job* job = ready.get_future().get();
  std::thread([&] {
    caf::scoped_actor self(*s.system);
    self->request(s.runs, caf::infinite, AskRun{s.step, feed(5), {.durable = true}})
        .receive(
            [&](const RunResult& result) {
              CHECK_MESSAGE(result.status.ok(), result.status.text());
              CHECK(result.committed == 2);
              CHECK(std::filesystem::exists(dir.path("job") + "/ckpt-2/manifest.json"));
            },
            [&](const caf::error&) { CHECK(false); });
  }).join();
  job->stop();
  server.join();
}

TEST_CASE("an actor that is ended answers those who wait with an error, and the session stays") {
  ServedGraph s;
  Output queue = queue_on(s.g, kTask0);
  Output taken = take_from(queue);
  Output fed = placeholder<float>(s.g, PartialShape::scalar());
  Op put = enqueue(queue, {fed});
  CompiledStep waits;
  std::thread([&] {
    waits = s.session->compile({taken});
    caf::scoped_actor self(*s.system);
    bool error = false;
    auto waiting = self->request(s.runs, caf::infinite, AskRun{waits});
    self->request(s.runs, caf::infinite, AskRun{s.twice, feed(1)})  // it has begun the other
        .receive([](const RunResult&) {}, [](const caf::error&) {});
    caf::anon_send_exit(s.runs, caf::exit_reason::user_shutdown);
    waiting.receive([](const RunResult&) {}, [&](const caf::error&) { error = true; });
    CHECK(error);
  }).join();
  s.session->run({}, {put}, {{fed, Tensor::scalar(1.0f)}});
  CHECK(s.value() == 0);
}

TEST_CASE("an actor of a session that has ended ends, too") {
  ServedGraph s;
  std::thread([&] {
    s.session->close();
    std::promise<void> down;
    const caf::actor late = value_or_throw(spawn_session_actor(*s.system, s.session));
    // Monitoring keeps nobody alive.
    const caf::actor monitor = s.system->spawn([&](caf::event_based_actor* self) {
      self->monitor(late);
      self->set_down_handler([self, &down](const caf::down_msg&) {
        down.set_value();
        self->quit();
      });
      return caf::behavior{[](int) {}};
    });
    down.get_future().get();
  }).join();
}
