#include "actors/master/sessions.hpp"

#include <doctest/doctest.h>

#include <cstdlib>
#include <functional>

#include "actors/master/coordinator.hpp"
#include "core/hash.hpp"
#include "graph/node_hash.hpp"
#include "ops/api.hpp"
#include "ops/graph_api.hpp"

using namespace troupe;

namespace {

constexpr std::size_t kJobTasks = 3;
constexpr const char* kContainers[] = {"x", "y"};

DeviceName cpu_of(std::size_t task) {
  return *DeviceName::parse("/job:worker/task:" + std::to_string(task) + "/cpu:0");
}

// A client's graph and what it asked for.
struct SessionClient {
  explicit SessionClient(std::uint64_t id) : id(id) {}

  // Nodes that add to a variable of a container on a task.
  void grow(std::size_t task, const std::string& container) {
    auto there = g.with_device(cpu_of(task).text());
    const std::string name = "v" + std::to_string(requests.size());
    Variable v = variable(g, name, Tensor::scalar(0.0f), {.container = container});
    CompileRequest request;
    request.targets.push_back(assign_add(v, constant(g, 1.0f)).name());
    requests.push_back(std::move(request));
    uses.push_back(container);
  }
  ExtendSession extend(std::shared_ptr<Call> call) {
    ExtendSession message{id, nullptr, std::move(call), from, hash};
    auto graph = std::make_shared<GraphDef>();
    const auto& nodes = g.def().nodes;
    graph->nodes.assign(nodes.begin() + std::ptrdiff_t(from), nodes.end());
    for (const NodeDef& node : graph->nodes) hash = hash_nodes(hash, node);
    from = nodes.size();
    message.graph = std::move(graph);
    return message;
  }

  const std::uint64_t id;
  Graph g;
  std::uint64_t from = 0, hash = 0, next_run = 1;
  std::vector<CompileRequest> requests;
  std::vector<std::string> uses;  // parallel to requests: the container
  std::vector<CompiledId> compiled;
};

// The machines of a master with everything around them: a compile thread and processes that take
// their messages in order, each as fast as a seed says.
class SessionsJob {
 public:
  explicit SessionsJob(std::uint64_t seed, std::size_t most_steps = 64)
      : random_(seed), sessions({.compiled_steps = most_steps}), graphs_(ops::builtin()) {
    for (std::size_t p = 0; p < kJobTasks; ++p) {
      const std::string name = "worker " + std::to_string(p);
      coordinator_.add_task(TaskId(p), name, true);
      sessions.task_up(TaskId(p), name, {{cpu_of(p), MemorySpace::host}});
    }
  }

  std::shared_ptr<Call> call(std::string what) {
    auto call = std::make_shared<Call>();
    calls_.emplace(call.get(), Asked{std::move(what), call, 0});
    return call;
  }
  template <class Input>
  void feed(Input input) {
    Sessions::Outputs out;
    input(out);
    for (Sessions::Output& o : out) std::visit([this](auto& x) { this->carry_out(x); }, o);
  }

  SessionClient& open() {
    clients.push_back(std::make_unique<SessionClient>(clients.size() + 1));
    feed([&](auto& out) { sessions.open({clients.back()->id, call("open")}, out); });
    return *clients.back();
  }
  std::shared_ptr<Call> extend(SessionClient& client) {
    auto c = call("extend");
    feed([&](auto& out) { sessions.ask(client.extend(c), out); });
    return c;
  }
  std::shared_ptr<Call> compile(SessionClient& client, std::size_t request) {
    auto c = call("compile");
    c->then([&client](const CallResult& result) {
      if (result.status.ok()) client.compiled.push_back(result.compiled);
    });
    feed([&](auto& out) {
      sessions.ask(CompileStep{client.id, client.requests[request], c}, out);
    });
    return c;
  }
  std::shared_ptr<Call> run(SessionClient& client, CompiledId step) {
    RunStep message;
    message.run = {client.id, client.next_run++};
    message.compiled = step;
    const std::shared_ptr<Call> asked = message.call = call("run");
    Sessions::Run* run = nullptr;
    feed([&](auto& out) { run = sessions.begin(message, out); });
    if (!run) return asked;
    running_[message.run] = step;
    feed_coordinator([&](auto& out) { coordinator_.run({message.run, run->step}, now_, out); });
    return asked;
  }
  std::shared_ptr<Call> reset(const std::string& container) {
    auto c = call("reset");
    feed([&](auto& out) { sessions.reset({{container}, c}, out); });
    return c;
  }
  std::shared_ptr<Call> close(SessionClient& client) {
    auto c = call("close");
    feed([&](auto& out) { sessions.close({client.id, c}, out); });
    return c;
  }
  void lose(TaskId task) {
    lost = true;
    tasks_[task].gone = true;
    const Status why = unavailable("it was killed");
    feed([&](auto& out) { sessions.task_lost(task, why, out); });
    feed_coordinator([&](auto& out) { coordinator_.task_lost(task, why, now_, out); });
  }

  // One event; false when there is none but the passing of time.
  bool step() {
    now_ += std::chrono::milliseconds(1);
    if (coordinator_.next_wakeup() <= now_)
      feed_coordinator([&](auto& out) { coordinator_.tick(now_, out); });
    std::vector<std::deque<std::function<void()>>*> ready;
    for (auto& [_, queue] : queues_)
      if (!queue.empty()) ready.push_back(&queue);
    if (ready.empty()) return false;
    auto& queue = *ready[random_.below(ready.size())];
    auto event = std::move(queue.front());
    queue.pop_front();
    event();
    return true;
  }
  // Until nothing more can happen.
  void drain() {
    for (int quiet = 0; quiet < 2000;) quiet = step() ? 0 : quiet + 1;
  }
  std::string unanswered() const {
    std::string text;
    for (const auto& [_, asked] : calls_)
      if (!asked.call->done()) text += asked.what + " ";
    return text;
  }
  bool tasks_empty() const {
    for (const auto& [_, p] : tasks_)
      if (!p.gone && (!p.graphs.empty() || !p.steps.empty())) return false;
    return true;
  }
  void fail_loads(int permille) { load_failures_ = permille; }

 private:
  Random random_;

 public:
  Sessions sessions;
  std::vector<std::unique_ptr<SessionClient>> clients;
  std::vector<std::string> seen;  // kinds of work that was begun, in order
  bool lost = false;
  int whole_graphs = 0;  // that a task was sent from its first node on
  std::set<Code> codes;  // of calls that failed
  std::map<std::string, int> ok;

 private:
  struct Asked {
    std::string what;
    std::shared_ptr<Call> call;
    int finished = 0;
  };
  struct Task {
    bool gone = false;
    std::map<std::uint64_t, std::uint64_t> graphs;  // session -> version
    std::set<CompiledId> steps;
  };

  // In order, to or from a process or the compile thread.
  void later(int queue, std::function<void()> event) { queues_[queue].push_back(std::move(event)); }
  void at(TaskId task, std::function<void(Task&)> event) {
    later(int(task), [this, task, event = std::move(event)] {
      if (!tasks_[task].gone) event(tasks_[task]);
    });
  }
  void back(TaskId task, std::function<void()> event) {
    later(100 + int(task), [this, task, event = std::move(event)] {
      if (!tasks_[task].gone) event();
    });
  }

  void carry_out(Sessions::Finish& finish) {
    Asked& asked = calls_.at(finish.call.get());
    CHECK_MESSAGE(++asked.finished == 1, asked.what, " was answered twice");
    if (asked.what == "reset" && lost) CHECK_FALSE(finish.result.status.ok());
    if (finish.result.status.ok())
      ++ok[asked.what];
    else
      codes.insert(finish.result.status.code());
    finish.call->finish(std::move(finish.result));
  }
  void begin_work(const char* kind, std::uint64_t session, const StopFlag& stop) {
    seen.push_back(kind);
    const StopFlag before = std::exchange(working_[session], stop);
    CHECK_MESSAGE((!before || *before), "two pieces of work of a session at one time");
  }
  void carry_out(Sessions::Extend& extend) {
    begin_work("extend", extend.message.session, extend.stop);
    later(99, [this, extend] {
      if (*extend.stop) return;
      auto extended = graphs_.extend(extend.message);
      GraphExtended done{extend.message.session, extend.work, extended.status()};
      if (extended.ok()) done.version = extended->version, done.changed = extended->changed;
      working_.erase(done.session);
      feed([&](auto& out) { sessions.extended(done, out); });
    });
  }
  void carry_out(Sessions::Compile& compile) {
    begin_work("compile", compile.step.session, compile.stop);
    later(99, [this, compile] {
      if (*compile.stop) return;
      StepCompiled done{compile.step.session, compile.work,
                        std::make_shared<CompiledStepDraft>(graphs_.compile(compile.step))};
      working_.erase(done.session);
      feed([&](auto& out) { sessions.compiled(done, out); });
    });
  }
  void carry_out(Sessions::SendGraph& send) {
    at(send.task, [this, graph = send.graph](Task& p) {
      if (graph.from == 0) ++whole_graphs;
      CHECK((graph.from == 0 || graph.from == p.graphs[graph.session]));
      p.graphs[graph.session] = graph.version;
    });
  }
  void carry_out(Sessions::SendStep& send) {
    for (const auto& client : clients)
      if (client->id == send.step.session)
        for (std::size_t r = 0; r < client->requests.size(); ++r)
          if (request_key(client->requests[r]) == request_key(send.step.request))
            container_of_[send.step.compiled] = client->uses[r];
    at(send.task, [this, step = send.step, task = send.task](Task& p) {
      CHECK(p.graphs[step.session] == step.version);
      p.steps.insert(step.compiled);
      Status status;
      if (int(random_.below(1000)) < load_failures_) status = resource_exhausted("no memory");
      back(task, [this, loaded = StepLoaded{step.compiled, task, status}] {
        feed([&](auto& out) { sessions.loaded(loaded, out); });
      });
    });
  }
  void carry_out(Sessions::Unload& unload) {
    for (std::size_t task = 0; task < kJobTasks; ++task)
      at(TaskId(task), [step = unload.step](Task& t) { t.steps.erase(step); });
  }
  void carry_out(Sessions::Forget& forget) {
    later(99, [this, id = forget.session] { graphs_.forget(id); });
    for (TaskId task : forget.tasks)
      at(task, [id = forget.session](Task& t) { t.graphs.erase(id); });
  }
  void carry_out(Sessions::Drop& drop) {
    coordinator_.rewind_datasets(drop.containers);
    for (const auto& [run, step] : running_)
      CHECK_MESSAGE(!drop.containers.contains(container_of_[step]),
                    "a container in use is dropped");
    for (const auto& [step, container] : container_of_)
      if (drop.containers.contains(container)) dropped_.insert(step);
  }
  void carry_out(Sessions::OpenRuns& open) { coordinator_.open_session(open.session); }
  void carry_out(Sessions::CloseRuns& close) {
    feed_coordinator([&](auto& out) { coordinator_.close_session(close.session, now_, out); });
  }
  void carry_out(Sessions::CancelRuns& cancel) {
    feed_coordinator([&](auto& out) {
      for (const RunId& run : cancel.runs) coordinator_.cancel(run, cancel.cause, now_, out);
    });
  }
  void carry_out(Sessions::Rewind&) {}
  void carry_out(Sessions::Warn&) {}

  template <class Input>
  void feed_coordinator(Input input) {
    Coordinator::Outputs out;
    input(out);
    for (Coordinator::Output& o : out) std::visit([this](auto& x) { this->carry_out(x); }, o);
  }
  void carry_out(Coordinator::StartAttempt& start) {
    const Sessions::Run* run = sessions.find(start.attempt.run);
    REQUIRE(run);
    CHECK_MESSAGE(!dropped_.contains(run->compiled), "a step of a dropped container is started");
    at(start.task, [this, start, step = run->compiled](Task& p) {
      CHECK_MESSAGE(p.steps.contains(step), "a step is started where it is not loaded");
      PartitionDone done;
      done.attempt = start.attempt.id;
      done.run = start.attempt.run;
      done.partition = start.partition;
      done.writes.push_back({{start.task, 0}, 1, false});
      done.fast_committed = start.grant;
      back(start.task, [this, done] {
        feed_coordinator([&](auto& out) { coordinator_.partition_done(done, now_, out); });
      });
    });
  }
  void carry_out(Coordinator::SendPrepare& send) {
    at(send.shard, [this, send](Task&) {
      const Prepare& p = send.prepare;
      back(send.shard, [this, staged = Staged{p.view, send.shard, p.s, 0, p.round, {}}] {
        feed_coordinator([&](auto& out) { coordinator_.staged(staged, now_, out); });
      });
    });
  }
  void carry_out(Coordinator::RevokeGrant&) {}  // it is used already
  void carry_out(Coordinator::AbortAttempt&) {}
  void carry_out(Coordinator::SendLive&) {}
  void carry_out(Coordinator::Expel&) {}
  void carry_out(Coordinator::ExplainDeadline&) {}
  void carry_out(Coordinator::Answer& answer) {
    running_.erase(answer.run);
    feed([&](auto& out) { sessions.ended(answer, out); });
  }
  void carry_out(Coordinator::SessionClosed& closed) {
    feed([&](auto& out) { sessions.closed(closed.session, out); });
  }
  void carry_out(Coordinator::JobStopped& stopped) { sessions.stop(stopped.status); }

  Coordinator coordinator_{Coordinator::Options{}};
  SessionGraphs graphs_;
  Instant now_{};
  int load_failures_ = 0;
  std::map<int, std::deque<std::function<void()>>> queues_;
  std::map<TaskId, Task> tasks_;
  std::map<Call*, Asked> calls_;
  std::map<std::uint64_t, StopFlag> working_;
  std::map<CompiledId, std::string> container_of_;
  std::set<CompiledId> dropped_;
  std::map<RunId, CompiledId> running_;
};

// What a client does next, any of it at any time.
void act(SessionsJob& job, Random& random, bool resets, bool closes) {
  SessionClient& client = *job.clients[random.below(job.clients.size())];
  const std::uint64_t what = random.below(100);
  if (what < 20) {
    client.grow(random.below(kJobTasks), kContainers[random.below(2)]);
    job.extend(client);
  } else if (what < 50) {
    if (!client.requests.empty()) job.compile(client, random.below(client.requests.size()));
  } else if (what < 90) {
    if (!client.compiled.empty())
      job.run(client, client.compiled[random.below(client.compiled.size())]);
  } else if (what < 95) {
    if (resets) job.reset(kContainers[random.below(2)]);
  } else if (closes) {
    job.close(client);
    job.open();
  }
}

}  // namespace

TEST_CASE("sessions answer every call once and leave nothing behind, under every schedule tried") {
  std::map<std::string, int> ok;
  std::set<Code> codes;
  const char* asked = std::getenv("TROUPE_FAST_SEEDS");
  const std::uint64_t seeds = asked ? std::strtoull(asked, nullptr, 10) : 120;
  for (std::uint64_t seed = 1; seed <= seeds; ++seed) {
    CAPTURE(seed);
    Random random(mix64(seed));
    const bool resets = random.below(4) != 0, closes = random.below(3) != 0;
    const bool loses = random.below(4) == 0;
    SessionsJob job(seed, 1 + random.below(4));
    if (random.below(3) == 0) job.fail_loads(100);
    for (int i = 0; i < 3; ++i) job.open();
    for (int i = 0; i < 120; ++i) {
      act(job, random, resets, closes);
      if (loses && i == 80) job.lose(TaskId(random.below(kJobTasks)));
      for (std::uint64_t n = random.below(8); n > 0; --n) job.step();
    }
    job.drain();
    for (const auto& client : job.clients) job.close(*client);
    job.drain();
    REQUIRE_MESSAGE(job.unanswered() == "", job.unanswered());
    CHECK(job.sessions.tables().empty());
    CHECK(job.tasks_empty());
    std::set<Code> may = {Code::not_found, Code::invalid_argument, Code::resource_exhausted};
    if (resets) may.insert(Code::aborted);
    if (closes) may.insert({Code::cancelled, Code::failed_precondition});
    if (loses) may.insert(Code::unavailable);
    for (Code code : job.codes) CHECK_MESSAGE(may.contains(code), std::string(code_name(code)));
    for (const auto& [what, n] : job.ok) ok[what] += n;
    codes.insert(job.codes.begin(), job.codes.end());
  }
  for (const char* what : {"open", "extend", "compile", "run", "reset", "close"})
    CHECK_MESSAGE(ok[what] > 100, what);
  for (Code code : {Code::not_found, Code::aborted, Code::cancelled, Code::unavailable})
    CHECK_MESSAGE(codes.contains(code), std::string(code_name(code)));
}

TEST_CASE("what is asked of a session is begun in order, each when the one before is answered") {
  SessionsJob job(1);
  SessionClient& client = job.open();
  client.grow(0, "x");
  auto first = job.extend(client);
  auto step = job.compile(client, 0);
  client.grow(1, "y");
  auto second = job.extend(client);
  CHECK(job.seen == std::vector<std::string>{"extend"});
  job.step();
  CHECK(first->done());
  CHECK(job.seen == std::vector<std::string>{"extend", "compile"});
  CHECK_FALSE(second->done());
  job.drain();
  CHECK(job.seen == std::vector<std::string>{"extend", "compile", "extend"});
  CHECK(step->result().status.ok());
  CHECK(second->result().status.ok());
}

TEST_CASE("a step that is asked for while it is loaded is compiled once") {
  SessionsJob job(1);
  SessionClient& client = job.open();
  client.grow(0, "x");
  job.extend(client);
  job.step();
  auto one = job.compile(client, 0);
  job.step();  // compiled, and not loaded yet
  auto two = job.compile(client, 0);
  CHECK_FALSE(two->done());
  job.drain();
  CHECK(one->result().compiled == two->result().compiled);
  CHECK(job.seen == std::vector<std::string>{"extend", "compile"});
}

TEST_CASE("a graph in which a loop was closed is compiled anew, and sent to its tasks again") {
  SessionsJob job(1);
  SessionClient& client = job.open();
  client.grow(0, "x");
  client.grow(1, "y");
  Graph& g = client.g;
  Output a = constant(g, 1.0f);
  Output first = g.add("Enter", {a}, {{"frame_name", "doubling"}, {"is_constant", false}});
  Output v = g.add("Merge", {first, first});
  job.extend(client);
  job.compile(client, 0);
  job.drain();
  job.compile(client, 1);  // on a task that is asked for nothing afterwards
  job.drain();
  REQUIRE(client.compiled.size() == 2);
  std::swap(client.compiled[0], client.compiled[1]);
  client.compiled.erase(client.compiled.begin());
  CHECK(job.whole_graphs == 2);
  job.compile(client, 0);
  job.drain();
  CHECK(client.compiled.at(1) == client.compiled[0]);  // it is known

  throw_if_error(g.close_loop(v.node(), 1, g.add("NextIteration", {v})));
  client.from = client.hash = 0;
  auto closed = job.extend(client);
  job.compile(client, 0);
  job.drain();
  CHECK_MESSAGE(closed->result().status.ok(), closed->result().status.text());
  REQUIRE(client.compiled.size() == 3);
  CHECK(client.compiled[2] != client.compiled[0]);
  CHECK(job.whole_graphs == 3);
  for (CompiledId step : client.compiled) {  // the old one, too
    auto run = job.run(client, step);
    job.drain();
    CHECK_MESSAGE(run->result().status.ok(), run->result().status.text());
  }
  job.compile(client, 0);
  job.drain();
  CHECK(client.compiled.at(3) == client.compiled[2]);

  client.from = client.hash = 0;  // the same graph as a whole: nothing has changed
  auto same = job.extend(client);
  job.compile(client, 0);
  job.drain();
  CHECK(same->result().status.ok());
  CHECK(client.compiled.at(4) == client.compiled[2]);
  CHECK(job.whole_graphs == 3);
  job.close(client);
  job.drain();
  CHECK(job.sessions.tables().empty());
  CHECK(job.tasks_empty());
}

TEST_CASE("a reset waits for the runs of what it drops, and compiling waits for it") {
  SessionsJob job(1);
  SessionClient& client = job.open();
  client.grow(0, "x");
  client.grow(1, "y");
  job.extend(client);
  job.compile(client, 0);
  job.drain();
  REQUIRE(client.compiled.size() == 1);
  auto run = job.run(client, client.compiled[0]);  // holds the fast path's number: not cancelled
  auto reset = job.reset("x");
  auto step = job.compile(client, 1);
  CHECK_FALSE(reset->done());
  CHECK(job.seen.size() == 2);
  job.drain();
  CHECK(run->result().status.ok());
  CHECK(reset->result().status.ok());
  CHECK(step->result().status.ok());
  CHECK(job.run(client, client.compiled[0])->result().unloaded);
}
