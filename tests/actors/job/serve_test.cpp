// Programs that answer requests: nobody is told what a killed process would forget.
#include <doctest/doctest.h>

#include <atomic>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <future>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "actors/runtime/platform.hpp"
#include "apps/troupe.hpp"
#include "core/hash.hpp"
#include "tests/actors/support/sessions.hpp"
#include "tests/serialization/temporary.hpp"

using namespace troupe;
using namespace troupe::test;
using troupe::testing::TemporaryDir;
namespace fs = std::filesystem;

namespace {

constexpr std::int64_t kOne = 1;

JobOptions served_in(const std::string& dir) {
  JobOptions options;
  options.dir = dir;
  options.checkpoint_seconds = JobOptions::kNever;  // when somebody waits, and the last one
  options.signals = false;
  return options;
}

// A counter, one of whose steps can be fed a NaN.
struct FedCounter {
  Graph g;
  Variable v = variable(g, "v", Tensor::scalar(0.0f));
  Op add = assign_add(v, constant(g, 1.0f));
  Output x = placeholder(g, DType::f32, Shape{});
  Session s{g, one_thread()};
  Job job;
  CompiledStep step = s.compile({}, {add}), fed = s.compile({x * 1.0f}, {add}, {x});

  FedCounter(const std::string& at, JobOptions::NanPolicy on_nan)
      : job(s, [&] {
          JobOptions options = served_in(at);
          options.on_nan = on_nan;
          return options;
        }()) {}
};

// A counter that is served by a thread of its own.
struct CountingJob {
  Graph g{3};
  Variable v = variable(g, "v", Tensor::scalar(std::int64_t{0}));
  Op add = assign_add(v, constant(g, kOne));
  std::unique_ptr<Session> session;
  CompiledStep step, look;
  Job* job = nullptr;
  std::thread server;

  explicit CountingJob(const JobOptions& options, const Cluster& cluster = one_thread()) {
    session = std::make_unique<Session>(g, cluster);
    std::promise<void> ready;
    server = std::thread([this, options, &ready] {
      Job here(*session, options);
      job = &here;
      ready.set_value();
      here.serve();
    });
    ready.get_future().wait();
    step = session->compile({}, {add});
    look = session->compile({v.value()});
  }
  ~CountingJob() { stop(); }
  void stop() {
    if (server.joinable()) {
      job->stop();
      server.join();
    }
  }
  std::int64_t value() { return session->run({v.value()})[0].item<std::int64_t>(); }
};

// The folder as it is now: what a process that is killed now leaves.
std::string killed(const TemporaryDir& dir, const std::string& name) {
  fs::copy(dir.path("job"), dir.path(name), fs::copy_options::recursive);
  return dir.path(name);
}

std::int64_t after_restart(const std::string& dir) {
  CountingJob again(served_in(dir));
  return again.value();
}

}  // namespace

TEST_CASE("what a durable run was answered is there after a kill") {
  const TemporaryDir dir;
  CountingJob counter(served_in(dir.path("job")));
  counter.step.run({}, {.durable = true});
  counter.step.run({}, {.durable = true});
  CHECK(after_restart(killed(dir, "second")) == 2);
  counter.step.run();  // not durable
  CHECK(after_restart(killed(dir, "third")) == 2);
  // Whoever is told of the third would know more than the job.
  CHECK(counter.look.run<std::int64_t>({}, {.durable = true}) == std::tuple(std::int64_t{3}));
  CHECK(after_restart(killed(dir, "fourth")) == 3);
}

TEST_CASE("many durable runs wait for few checkpoints") {
  const TemporaryDir dir;
  CountingJob counter(served_in(dir.path("job")));
  constexpr int kRuns = 200;
  std::vector<PendingRun> runs;
  for (int i = 0; i < kRuns; ++i) runs.push_back(counter.step.start({}, {.durable = true}));
  std::int64_t highest = 0;
  for (PendingRun& run : runs) {
    run.get();
    highest = std::max(highest, std::int64_t(run.committed()));
  }
  CHECK(after_restart(killed(dir, "job2")) == kRuns);
  counter.stop();
  CHECK(counter.job != nullptr);
  CHECK(highest == kRuns + 1);  // init() was the first
}

TEST_CASE("a run that is over calls back, also when it is durable") {
  const TemporaryDir dir;
  CountingJob counter(served_in(dir.path("job")));
  std::promise<std::string> told;
  PendingRun run = counter.look.start({}, {.durable = true});
  run.then([&](Expected<std::vector<Tensor>> fetched) {
    told.set_value(fetched.ok() ? std::to_string((*fetched)[0].item<std::int64_t>())
                                : fetched.status().text());
  });
  run = {};  // nobody else has it
  CHECK(told.get_future().get() == "0");
  std::promise<Status> failed;
  counter.look.start({Tensor::scalar(1.0f)})
      .then([&](const Expected<std::vector<Tensor>>& fetched) {
        failed.set_value(fetched.status());
      });
  CHECK(failed.get_future().get().code() == Code::invalid_argument);
  CHECK_THROWS_AS(PendingRun().then([](auto) {}), Error);
  CHECK_THROWS_AS(counter.look.start().then(nullptr), Error);
}

TEST_CASE("a durable run without a Job is refused, and so is one that waits for itself") {
  Graph g;
  Variable v = variable(g, "v", Tensor::scalar(0.0f));
  Op add = assign_add(v, constant(g, 1.0f));
  Session s(g, one_thread());
  {
    s.init();
    CompiledStep step = s.compile({}, {add});
    says(step.try_run({}, {.durable = true}).status(), Code::failed_precondition,
         "Job with a folder");
    says(step.start({}, {.durable = true}).try_get().status(), Code::failed_precondition, "Job");
    Job without(s);
    CHECK_THROWS_AS(without.serve(), Error);
    says(step.try_run({}, {.durable = true}).status(), Code::failed_precondition,
         "Job with a folder");
  }
  const TemporaryDir dir;
  Session other(g, one_thread());
  CompiledStep step = other.compile({}, {add});
  PendingRun late;
  {
    Job job(other, served_in(dir.path("job")));
    says(step.try_run({}, {.durable = true}).status(), Code::failed_precondition,
         "on the thread of the Job");
    PendingRun started = step.start({}, {.durable = true});
    says(started.try_get().status(), Code::failed_precondition, "on the thread of the Job");
    // Steps answer between them.
    for (const JobStep& each : job.steps(1'000'000)) {
      step.run(each);
      if (!started.done()) continue;
      late = step.start({}, {.durable = true});
      break;
    }
    CHECK(started.get().empty());
  }
  says(late.try_get().status(), Code::aborted, "not known to be in a checkpoint");
  CHECK(late.committed() > 0);
}

TEST_CASE("a checkpoint that cannot be written fails the durable runs that wait for it") {
  const TemporaryDir dir;
  CountingJob counter(served_in(dir.path("job")));
  counter.step.run({}, {.durable = true});
  // Nothing can be made in what is a file.
  fs::rename(dir.path("job"), dir.path("away"));
  std::ofstream(dir.path("job")) << "no folder";
  PendingRun run = counter.step.start({}, {.durable = true});
  const Status failed = run.try_get().status();
  CAPTURE(failed.text());
  CHECK(!failed.ok());
  CHECK(failed.text().find("at commit 3, but that is not known to be in a checkpoint") !=
        std::string::npos);
  CHECK(run.committed() == 3);
  fs::remove(dir.path("job"));
  fs::rename(dir.path("away"), dir.path("job"));
  counter.step.run({}, {.durable = true});
  CHECK(after_restart(killed(dir, "again")) == 3);
}

TEST_CASE("no durable run waits for a loop of the Job that is over") {
  const TemporaryDir dir;
  Graph g;
  Variable v = variable(g, "v", Tensor::scalar(0.0f));
  Op add = assign_add(v, constant(g, 1.0f));
  Session s(g, one_thread());
  CompiledStep step = s.compile({}, {add});
  Job job(s, served_in(dir.path("other")));
  PendingRun before = step.start({}, {.durable = true});
  SUBCASE("serve()") {
    job.stop();
    job.serve();
  }
  SUBCASE("steps()") {
    for (const JobStep& each : job.steps(1)) step.run(each);
  }
  SUBCASE("steps() that was left") {
    for (const JobStep& each : job.steps(5)) {
      step.run(each);
      break;
    }
  }
  CHECK(before.done());
  const Status status = step.start({}, {.durable = true}).try_get().status();
  says(status, Code::failed_precondition, "is over");
  for (const JobStep& each : job.steps(20)) {
    PendingRun again = step.start({}, {.durable = true});
    step.run(each);
  }
}

TEST_CASE("a durable run whose time is over is answered also while the Job does something else") {
  const TemporaryDir dir;
  Graph g;
  Variable v = variable(g, "v", Tensor::scalar(0.0f));
  Op add = assign_add(v, constant(g, 1.0f));
  Session s(g, one_thread());
  CompiledStep step = s.compile({}, {add});
  Job job(s, served_in(dir.path("job")));
  const CommitNumber before = s.committed();
  Status status;
  std::thread([&] {
    // On a slow machine the run itself may be late, and commits nothing.
    for (auto timeout = std::chrono::milliseconds(50); s.committed() == before; timeout *= 2)
      status = step.try_run({}, {.timeout = timeout, .durable = true}).status();
  }).join();
  says(status, Code::deadline_exceeded, "not known to be in a checkpoint");
}

TEST_CASE("elements that a durable run was answered are not given again after a kill") {
  const TemporaryDir dir;
  struct Numbers {
    Graph g{3};
    Variable v = variable(g, "v", Tensor::scalar(0.0f));
    Op add = assign_add(v, constant(g, 1.0f));
    Output element =
        data::tensors({Tensor::of<float>(Shape{4}, {1, 2, 3, 4})}).batch(1).outputs<1>(g)[0];
  };
  const auto life = [](const std::string& at, int takes) {
    Numbers n;
    Session s(n.g, one_thread());
    std::promise<Job*> ready;
    std::thread server([&] {
      Job job(s, served_in(at));
      ready.set_value(&job);
      job.serve();
    });
    Job* job = ready.get_future().get();
    CompiledStep next = s.compile({n.element});
    float last = 0;
    std::string left = at;
    for (int i = 0; i < takes; ++i) last = next.run({}, {.durable = true})[0].data<float>()[0];
    fs::copy(at, at + "-killed", fs::copy_options::recursive);
    job->stop();
    server.join();
    return last;
  };
  CHECK(life(dir.path("job"), 2) == 2);
  CHECK(life(dir.path("job") + "-killed", 1) == 3);
}

TEST_CASE("a durable run of what the job went back behind is no success") {
  const TemporaryDir dir;
  FedCounter counter(dir.path("job"), JobOptions::NanPolicy::back);
  PendingRun kept, undone;
  for (const JobStep& each : counter.job.steps(100'000)) {
    if (each.number() == 1) kept = counter.step.start({}, {.durable = true});
    if (!kept.done()) {  // no checkpoint has it
      counter.step.run(each);
      continue;
    }
    CHECK(kept.get().empty());
    const CommitNumber before = counter.s.committed();
    undone = counter.step.start({}, {.durable = true});
    while (counter.s.committed() == before) std::this_thread::yield();
    counter.fed.run({Tensor::scalar(NAN)}, each);
    counter.job.stop();
  }
  CHECK(undone.try_get().status().code() == Code::aborted);
}

TEST_CASE(
    "what a job commits while it serves is in its last checkpoint, also after dropped steps") {
  const TemporaryDir dir;
  // The value at its beginning.
  const auto life = [&](std::int64_t steps, int runs) {
    FedCounter counter(dir.path("job"), JobOptions::NanPolicy::skip);
    const float before = counter.s.run({counter.v.value()})[0].item<float>();
    // Three of four commit nothing, so that the step is far ahead of the commit.
    for (const JobStep& each : counter.job.steps(steps))
      each.number() % 4 == 0 ? counter.step.run(each)
                             : counter.fed.run({Tensor::scalar(NAN)}, each);
    std::thread other([&] {
      for (int i = 0; i < runs; ++i) counter.step.run();
      counter.job.stop();
    });
    counter.job.serve();
    other.join();
    return before;
  };
  CHECK(life(8, 3) == 0);
  CHECK(life(8, 1) == 5);
  CHECK(life(8, 0) == 6);
}

TEST_CASE(
    "what is committed while a checkpoint is written before a job serves is in its last one") {
  const TemporaryDir dir;
  // The value at its beginning.
  const auto life = [&](std::int64_t steps) {
    Graph g;
    // So large that it is still being written when the loop is left.
    Variable v = variable(g, "v", Tensor::zeros(DType::f32, Shape{1 << 22}).value());
    Op add = assign_add(v, ones(g, {1 << 22}));
    Output first = v[0], x = placeholder(g, DType::f32, Shape{});
    Session s(g, one_thread());
    JobOptions options = served_in(dir.path("job"));
    options.checkpoint_steps = 4;
    options.on_nan = JobOptions::NanPolicy::skip;
    Job job(s, options);
    const float before = s.run({first})[0].item<float>();
    CompiledStep step = s.compile({}, {add}), fed = s.compile({x * 1.0f}, {add}, {x});
    for (const JobStep& each : job.steps(steps)) {
      if (each.number() == 5) {  // behind the checkpoint of the fourth
        step.run();
        break;
      }
      // Three of four commit nothing, so that the step is ahead of the commit.
      each.number() == 4 ? step.run(each) : fed.run({Tensor::scalar(NAN)}, each);
    }
    job.stop();
    job.serve();
    return before;
  };
  CHECK(life(5) == 0);
  CHECK(life(0) == 2);
}

TEST_CASE("a service that is killed between its answers forgets none of them") {
  const std::uint64_t seed = machine_random();
  CAPTURE(seed);
  Random random(seed);
  const TemporaryDir dir;
  std::int64_t acknowledged = 0;
  std::string at = dir.path("job");
  for (int life = 0; life < 4; ++life) {
    CountingJob counter(served_in(at));
    CHECK(counter.value() >= acknowledged);
    acknowledged = counter.value();
    std::atomic<std::int64_t> answers{0};
    std::vector<std::thread> clients;
    for (int i = 0; i < 3; ++i)
      clients.emplace_back([&counter, &answers, runs = 1 + random.below(6)] {
        for (std::uint64_t n = 0; n < runs; ++n)
          if (counter.step.try_run({}, {.durable = true}).ok()) ++answers;
      });
    // A copy at any moment may be of no checkpoint at all, as a kill may leave a half-written one.
    const std::int64_t before = answers;
    const std::string copy = dir.path("life" + std::to_string(life));
    std::error_code torn;  // what is being removed while it is copied
    fs::copy(at, copy, fs::copy_options::recursive, torn);
    for (auto& client : clients) client.join();
    if (!torn) CHECK(after_restart(copy) >= acknowledged + before);
    acknowledged += answers;
    counter.stop();
    at = dir.path("next" + std::to_string(life));
    fs::copy(dir.path(life == 0 ? "job" : "next" + std::to_string(life - 1)), at,
             fs::copy_options::recursive);
  }
  CHECK(after_restart(at) == acknowledged);
}

TEST_CASE("a durable run inside of once() is refused: both would wait for ever") {
  const TemporaryDir dir;
  CountingJob counter(served_in(dir.path("job")));
  Status inside;
  CHECK(value_or_throw(counter.session->try_once("seed", [&] {
    inside = counter.step.try_run({}, {.durable = true}).status();
    return counter.step.try_run().status();
  })));
  CHECK(inside.code() == Code::failed_precondition);
  CHECK_MESSAGE(inside.message().find("once") != std::string::npos, inside.text());
  CHECK(counter.step.try_run({}, {.durable = true}).ok());
  CHECK(counter.value() == 2);
}

TEST_CASE("a watcher is not called once unwatch() has returned") {
  Graph g;
  Variable v = variable(g, "v", Tensor::scalar(0.0f));
  Op add = assign_add(v, constant(g, 1.0f));
  Session s(g, one_thread());
  s.init();
  std::promise<void> called, go_on;
  std::atomic<bool> gone{false}, late{false};
  const std::uint64_t watcher = s.watch([&](const SessionEvent&) {
    late = late || gone;
    called.set_value();
    go_on.get_future().wait();
    late = late || gone;
  });
  std::thread runs([&] { s.run({}, {add}); });
  called.get_future().wait();
  std::thread ends([&] {
    s.unwatch(watcher);
    gone = true;
  });
  go_on.set_value();
  ends.join();
  runs.join();
  s.run({}, {add});
  CHECK_FALSE(late);
}

TEST_CASE("a session tells whoever watches it") {
  Graph g;
  Variable v = variable(g, "v", Tensor::scalar(0.0f));
  Op add = assign_add(v, constant(g, 1.0f));
  std::vector<SessionEvent> events, others;
  auto s = std::make_unique<Session>(g, one_thread());
  s->watch([&](const SessionEvent& event) { events.push_back(event); });
  const std::uint64_t other = s->watch([&](const SessionEvent& event) { others.push_back(event); });
  s->init();
  s->unwatch(other);
  s->run({}, {add});
  s->run({v.value()});
  s->close();
  REQUIRE(events.size() == 3);
  CHECK((events[0].kind == SessionEvent::Kind::committed && events[0].committed == 1));
  CHECK((events[1].kind == SessionEvent::Kind::committed && events[1].committed == 2));
  CHECK((events[2].kind == SessionEvent::Kind::ended && events[2].status.ok()));
  CHECK(others.size() == 1);
  CHECK_THROWS_AS(s->watch(nullptr), Error);
}
