// What a worker that knows the secret says to a master that asks it for a step: true or not. Each
// time the run ends with a Status that names the worker, the worker is a member no longer, and the
// master lives.
#include <doctest/doctest.h>

#include <caf/actor_system.hpp>
#include <caf/actor_system_config.hpp>
#include <caf/scheduler/test_coordinator.hpp>
#include <caf/send.hpp>
#include <caf/typed_event_based_actor.hpp>

#include "actors/master/master_actor.hpp"
#include "ops/op.hpp"
#include "tests/actors/sim/world.hpp"
#include "tests/actors/support/nodes.hpp"
#include "tests/actors/support/quiet.hpp"

using namespace troupe;
using namespace troupe::test;
using namespace std::chrono_literals;

namespace {

struct TestConfig : caf::actor_system_config {
  TestConfig() {
    set("scheduler.policy", caf::atom("testing"));
    set("logger.inline-output", true);
  }
};

// A master and its one worker, which the test plays: it loads everything, and answers a step that
// writes a variable and fetches its value and an i64 vector as it should, but for what `done` and
// `prepare` do about it. One thread, virtual time.
class PlayedWorker {
 public:
  static constexpr TaskId kTask{0};

  std::function<void(PartitionDone&)> done = [](PartitionDone&) {};
  // Its answer; false: none.
  std::function<bool(Staged&)> prepare = [](Staged&) { return true; };
  Status expelled;
  std::vector<std::uint64_t> forgotten;  // sessions

  PlayedWorker() {
    MasterOptions options;
    options.ops = &ops::builtin();
    options.own_threads = false;  // one thread, which the test lends
    master_ = spawn_master(system_, std::move(options));
    TaskUp up;
    up.task = kTask;
    up.name = "0 at nowhere:1";
    up.devices = {
        {value_or_throw(DeviceName::parse("/job:worker/task:0/device:CPU:0")), MemorySpace::host}};
    up.actor = worker_ = system_.spawn([this](ProcessActor::pointer) { return behavior(); });
    caf::anon_send(master_, std::move(up));
    Variable v = variable_on(g_, kTask0, "v", Tensor::scalar(0.0f));
    Output ids =
        constant(g_, Tensor::of<std::int64_t>({2}, {1, 2})) + constant(g_, std::int64_t{1});
    client_.emplace(master_, 1, g_);
    client_->compile("step", {v.value(), ids}, {assign_add(v, constant(g_, 1.0f))});
  }
  ~PlayedWorker() {
    caf::anon_send_exit(master_, caf::exit_reason::user_shutdown);
    caf::anon_send_exit(worker_, caf::exit_reason::user_shutdown);
    client_.reset();
    master_ = nullptr;
    worker_ = nullptr;
    scheduler_.run();
  }

  // To the master, before the answer that `done` is given.
  void reset() {
    caf::anon_send(master_, ResetContainers{{""}, std::make_shared<Call>(), {1, 1'000'000}, {}});
  }
  void close() {
    client_->close();
    while (!client_->finished()) {
      scheduler_.run();
      if (client_->ready()) client_->step();
    }
    scheduler_.run();
  }
  // How a run of the step ends, within that time.
  Status run(Instant timeout = kNever, Instant within = 60s) {
    client_->try_run("step", timeout);
    const auto until = scheduler_.clock().now() + within;
    while (!client_->finished()) {
      scheduler_.run();
      if (client_->ready())
        client_->step();
      else if (!scheduler_.has_job() && !pass_time(until))
        return internal_error("the run does not end");
    }
    return client_->status().ok() ? client_->ended().back() : client_->status();
  }

 private:
  bool pass_time(caf::actor_clock::time_point until) {
    auto& clock = scheduler_.clock();
    if (clock.schedule().empty() || clock.schedule().begin()->first > until) return false;
    const auto due = clock.schedule().begin()->first;
    if (due > clock.now()) clock.advance_time(due - clock.now());
    if (!clock.schedule().empty() && clock.schedule().begin()->first <= clock.now())
      scheduler_.trigger_timeout();
    return true;
  }
  PartitionDone honest(const StartPartition& start) const {
    PartitionDone m;
    m.attempt = start.attempt.id;
    m.run = start.attempt.run;
    m.partition = start.partition;
    m.fetches = {{0, Tensor::scalar(0.0f)}, {1, Tensor::of<std::int64_t>({2}, {2, 3})}};
    m.writes = {{{kTask, 0}, 1}};
    return m;
  }
  ProcessActor::behavior_type behavior() {
    return {
        [](const LoadGraph&) {},
        [this](const LoadStep& m) {
          caf::anon_send(master_, StepLoaded{m.compiled, kTask, {}});
        },
        [](const UnloadStep&) {},
        [this](const ForgetGraph& m) { forgotten.push_back(m.session); },
        [](const DropContainers&) {},
        [this](const StartPartition& m) {
          PartitionDone answer = honest(m);
          done(answer);
          caf::anon_send(master_, std::move(answer));
        },
        [](const AbortPartition&) {},
        [](const RevokeGrant&) {},
        [this](const Prepare& m) {
          Staged answer{m.view, kTask, m.s, 0, m.round, {}};
          if (prepare(answer)) caf::anon_send(master_, std::move(answer));
        },
        [](const LiveList&) {},
        [](const Members&) {},
        [this](const ExpelProcess& m) {
          expelled = m.why;
          caf::anon_send(master_, TaskLost{kTask, m.why});
        },
        [](const AskWaits&) {},
        [](const Leave&) {},
    };
  }

  TestConfig config_;
  caf::actor_system system_{config_};
  caf::scheduler::test_coordinator& scheduler_ =
      dynamic_cast<caf::scheduler::test_coordinator&>(system_.scheduler());
  Graph g_;
  MasterActor master_;
  ProcessActor worker_;
  std::optional<Client> client_;
};

struct Lie {
  const char* name;
  std::function<void(PartitionDone&)> tell;
  const char* text;  // that the client reads
};

const Lie kLies[] = {
    {"no values", [](PartitionDone& m) { m.fetches.clear(); }, "value 0 is missing"},
    {"one value less", [](PartitionDone& m) { m.fetches.pop_back(); }, "value 1 is missing"},
    {"a value too many",
     [](PartitionDone& m) {
       m.fetches.push_back({7, Tensor::scalar(1.0f)});
     },
     "3 values instead of 2"},
    {"one value twice", [](PartitionDone& m) { m.fetches[1] = m.fetches[0]; },
     "value 1 is missing"},
    {"both, and one twice", [](PartitionDone& m) { m.fetches.push_back(m.fetches[0]); },
     "3 values instead of 2"},
    {"a number that no value has", [](PartitionDone& m) { m.fetches[0].index = 1u << 31; },
     "value 0 is missing"},
    {"an undefined value", [](PartitionDone& m) { m.fetches[0].value = Tensor(); },
     "value 0 is missing"},
    {"another type", [](PartitionDone& m) { m.fetches[0].value = Tensor::scalar(1.0); },
     "value 0 is f64"},
    {"a string", [](PartitionDone& m) { m.fetches[0].value = Tensor::scalar(std::string("0")); },
     "value 0 is string"},
    {"a vector for a scalar",
     [](PartitionDone& m) {
       m.fetches[0].value = Tensor::of<float>({2}, {1, 2});
     },
     "value 0 is f32[2]"},
    {"a longer vector",
     [](PartitionDone& m) {
       m.fetches[1].value = Tensor::of<std::int64_t>({3}, {1, 2, 3});
     },
     "value 1 is i64[3]"},
    {"the values exchanged",
     [](PartitionDone& m) { std::swap(m.fetches[0].index, m.fetches[1].index); }, "value 0 is i64"},
    {"writes of another task", [](PartitionDone& m) { m.writes[0].resource.task = TaskId{7}; },
     "writes to a resource of task 7"},
    {"writes named twice", [](PartitionDone& m) { m.writes.push_back(m.writes[0]); },
     "resource 0 is named twice"},
    {"a partition that is none", [](PartitionDone& m) { m.partition = 9; }, "partition 9 of 1"},
};

}  // namespace

TEST_CASE("a worker played by a test works") {
  PlayedWorker worker;
  for (int i = 0; i < 3; ++i) CHECK(worker.run().ok());
  CHECK(worker.expelled.ok());
  CHECK(worker.forgotten.empty());
  worker.close();
  CHECK(worker.forgotten == std::vector<std::uint64_t>{1});
}

TEST_CASE("what a worker says of a step is checked against the step") {
  test::Quiet quiet;
  for (const Lie& lie : kLies) {
    CAPTURE(lie.name);
    PlayedWorker worker;
    CHECK(worker.run().ok());
    worker.done = lie.tell;
    Status status = worker.run();
    CHECK(status.code() == Code::internal);
    CHECK_MESSAGE(status.text().find(lie.text) != std::string::npos, status.text());
    CHECK_MESSAGE(status.text().find("worker 0 at nowhere:1") != std::string::npos, status.text());
    CHECK_FALSE(worker.expelled.ok());
    worker.done = [](PartitionDone&) {};
    CHECK(worker.run().code() == Code::unavailable);  // it is gone, and the master lives
  }
}

TEST_CASE("what a worker says of a step that is being dropped is checked, too") {
  test::Quiet quiet;
  PlayedWorker worker;
  CHECK(worker.run().ok());
  worker.done = [&](PartitionDone& m) {
    worker.reset();
    m.writes.clear();
    m.fetches.clear();
    m.fast_committed = 2;  // as granted: it is too late to call the run off
  };
  CHECK(worker.run().code() == Code::aborted);
  CHECK(worker.expelled.code() == Code::internal);
}

TEST_CASE("values of a partition that failed are nobody's") {
  PlayedWorker worker;
  worker.done = [](PartitionDone& m) {
    m.fetches.clear();
    m.status = invalid_argument("it was not to be");
  };
  CHECK(worker.run().code() == Code::invalid_argument);
  CHECK(worker.expelled.ok());
}

TEST_CASE("a worker that refuses a commit fails that run alone") {
  PlayedWorker worker;
  worker.prepare = [](Staged& m) {
    m.status = resource_exhausted("no memory");
    return true;
  };
  Status status = worker.run();
  CHECK(status.code() == Code::resource_exhausted);
  CHECK_MESSAGE(status.text().find("0 at nowhere:1") != std::string::npos, status.text());
  worker.prepare = [](Staged&) { return true; };
  CHECK(worker.run().ok());
  CHECK(worker.expelled.ok());
}

TEST_CASE("a worker that does not answer a commit keeps no run from its deadline, and is lost") {
  test::Quiet quiet;
  PlayedWorker worker;
  CHECK(worker.run().ok());
  worker.prepare = [](Staged&) { return false; };
  CHECK(worker.run(100ms, 1s).code() == Code::deadline_exceeded);
  Status status = worker.run(kNever, 30s);
  CHECK(status.code() == Code::unavailable);
  CHECK_MESSAGE(status.text().find("did not stage a commit within 10 s") != std::string::npos,
                status.text());
  CHECK_FALSE(worker.expelled.ok());
}

TEST_CASE("a worker that answers too late, twice and for another number decides nothing") {
  test::Quiet quiet;
  PlayedWorker worker;
  worker.prepare = [](Staged& m) {
    ++m.round;
    return true;
  };
  CHECK(worker.run(100ms, 1s).code() == Code::deadline_exceeded);
}
