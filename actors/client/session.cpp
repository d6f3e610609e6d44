#include "actors/client/session.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <caf/send.hpp>
#include <filesystem>
#include <map>
#include <mutex>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <shared_mutex>
#include <thread>
#include <unordered_map>
#include <unordered_set>

#include "actors/client/durable_runs.hpp"
#include "actors/client/job_state.hpp"
#include "actors/client/run_log.hpp"
#include "actors/client/session_graph.hpp"
#include "actors/client/shipped_graph.hpp"
#include "actors/client/takes_elements.hpp"
#include "actors/inline_send.hpp"
#include "actors/job/control_socket.hpp"
#include "actors/master/run_numbers.hpp"
#include "actors/resources/request.hpp"
#include "actors/runtime/platform.hpp"
#include "actors/runtime/residents.hpp"
#include "actors/runtime/runtime.hpp"
#include "actors/runtime/worker_process.hpp"
#include "actors/supervision/restart_budget.hpp"
#include "core/feeds.hpp"
#include "core/hash.hpp"
#include "core/log.hpp"
#include "core/uncaught.hpp"
#include "devices/lent_thread.hpp"
#include "graph/control/functions/body.hpp"
#include "graph/node_hash.hpp"
#include "graph/node_query.hpp"
#include "ops/data/pipeline.hpp"
#include "ops/graph_api.hpp"
#include "serialization/checkpoint.hpp"
#include "serialization/resource_state.hpp"
#include "serialization/safetensors.hpp"

namespace troupe {
namespace detail {

// What the master has of a graph: the number of nodes, their running hash, and the nodes that may
// change later (Merges), with a hash of their inputs.
struct Shipped {
  std::size_t nodes = 0, functions = 0;
  std::uint64_t hash = 0;
  std::vector<NodeId> merges;
  std::uint64_t merges_hash = 0;
};

// The unanswered calls of a session: if its runtime fails, they are answered here. Any thread.
class OpenCalls {
 public:
  // Adds the call. After a fault it returns the fault's status instead.
  Status add(const std::shared_ptr<Call>& call) {
    std::lock_guard lock(mutex_);
    if (!fault_.ok()) return fault_;
    if (calls_.size() >= sweep_at_) {
      std::erase_if(calls_, [](const std::weak_ptr<Call>& each) {
        const auto open = each.lock();
        return !open || open->done();
      });
      sweep_at_ = std::max<std::size_t>(64, 2 * calls_.size());
    }
    calls_.push_back(call);
    return ok_status();
  }
  // Answers all calls, and those that come later, with the first fault.
  void fail(Status fault) {
    std::vector<std::weak_ptr<Call>> open;
    {
      std::lock_guard lock(mutex_);
      if (fault_.ok()) fault_ = std::move(fault);
      open.swap(calls_);
    }
    for (const auto& each : open)
      if (auto call = each.lock()) {
        CallResult result;
        result.status = this->fault();
        call->finish(std::move(result));
      }
  }
  Status fault() const {
    std::lock_guard lock(mutex_);
    return fault_;
  }
  // The answer to calls whose message the master did not handle: the session is closed, or why
  // there is another master now.
  void set_unread(Status status) {
    std::lock_guard lock(mutex_);
    unread_ = std::move(status);
  }
  Status unread() const {
    std::lock_guard lock(mutex_);
    return fault_.ok() ? unread_ : fault_;
  }

 private:
  mutable std::mutex mutex_;
  Status fault_, unread_ = failed_precondition("the session is closed");
  std::vector<std::weak_ptr<Call>> calls_;
  std::size_t sweep_at_ = 64;
};

// Calls the client's callbacks, which may start runs. A thread that needs the session alone, or
// ends the runtime, holds them back: they would wait for its locks on threads that it waits for.
// They are called later, by let_go(). Any thread.
class Callbacks {
 public:
  // Whether this thread is in a callback.
  static bool here() { return depth > 0; }
  void call(std::function<void()> f) {
    {
      std::lock_guard lock(mutex_);
      if (held_ > 0) return later_.push_back(std::move(f));
      ++running_;
    }
    run(std::move(f));
    std::lock_guard lock(mutex_);
    if (--running_ == 0) none_runs_.notify_all();
  }
  // Waits until no callback is under way. REQUIRES: !here().
  void hold() {
    std::unique_lock lock(mutex_);
    ++held_;
    none_runs_.wait(lock, [&] { return running_ == 0; });
  }
  // REQUIRES: the caller holds no lock that a callback may wait for.
  void let_go() {
    std::vector<std::function<void()>> left;
    {
      std::lock_guard lock(mutex_);
      if (--held_ == 0) left.swap(later_);
    }
    for (auto& f : left) call(std::move(f));
  }

 private:
  // An exception ends the process, since this is a thread of the runtime. Destroys `f` afterwards.
  static void run(std::function<void()> f) noexcept {
    ++depth;
    f();
    f = nullptr;
    --depth;
  }
  inline static thread_local int depth = 0;
  std::mutex mutex_;
  std::condition_variable none_runs_;
  int held_ = 0, running_ = 0;
  std::vector<std::function<void()>> later_;
};

class CallbacksHeld {
 public:
  explicit CallbacksHeld(std::shared_ptr<Callbacks> callbacks) : callbacks_(std::move(callbacks)) {
    callbacks_->hold();
  }
  ~CallbacksHeld() { callbacks_->let_go(); }
  CallbacksHeld(const CallbacksHeld&) = delete;
  CallbacksHeld& operator=(const CallbacksHeld&) = delete;

 private:
  const std::shared_ptr<Callbacks> callbacks_;
};

// The watchers of a session. Any thread.
class Watchers {
 public:
  using Watcher = std::function<void(const SessionEvent&)>;
  explicit Watchers(std::shared_ptr<Callbacks> callbacks) : callbacks_(std::move(callbacks)) {}

  std::uint64_t add(Watcher watcher) {
    auto added = std::make_shared<const Watcher>(std::move(watcher));
    std::unique_lock lock(mutex_);
    const std::uint64_t number = ++last_;
    all_.emplace(number, added);
    any_ = true;
    const std::optional<SessionEvent> ended = ended_;
    lock.unlock();
    if (ended) callbacks_->call([added, event = *ended] { (*added)(event); });
    return number;
  }
  void remove(std::uint64_t number) {
    std::lock_guard lock(mutex_);
    all_.erase(number);
    any_ = !all_.empty();
  }
  void tell(const SessionEvent& event) {
    const bool ends = event.kind == SessionEvent::Kind::ended;
    if (!any_ && !ends) return;
    std::vector<std::shared_ptr<const Watcher>> told;
    {
      std::lock_guard lock(mutex_);
      if (ends && ended_) return;
      if (ends) ended_ = event;
      for (const auto& [_, watcher] : all_) told.push_back(watcher);
    }
    for (auto& watcher : told)
      callbacks_->call([watcher = std::move(watcher), event] { (*watcher)(event); });
  }

 private:
  const std::shared_ptr<Callbacks> callbacks_;
  std::atomic<bool> any_{false};
  std::mutex mutex_;
  std::uint64_t last_ = 0;
  std::map<std::uint64_t, std::shared_ptr<const Watcher>> all_;
  std::optional<SessionEvent> ended_;  // told to later watchers, too
};

// The state shared by a session, its compiled steps and pending runs. Messages go to the master;
// answers return through Calls.
struct SessionCore {
  std::unique_ptr<Graph> owned;  // Session{GraphDef}: outlives all that uses it
  GraphBuilder& graph;
  const std::weak_ptr<const void> graph_life;
  Cluster cluster;
  const std::shared_ptr<OpenCalls> calls = std::make_shared<OpenCalls>();
  const std::shared_ptr<Callbacks> callbacks = std::make_shared<Callbacks>();
  const std::shared_ptr<Watchers> watchers = std::make_shared<Watchers>(callbacks);
  DurableRuns durable;
  std::unique_ptr<Runtime> runtime;
  std::shared_ptr<Residents> residents;  // if it is in an actor system of the program
  std::uint64_t resident = 0;
  MasterActor master;
  std::uint64_t id = 0;
  std::atomic<CommitNumber> committed{0};
  std::atomic<bool> closed{false};
  std::shared_mutex sending;  // shared: sends to the master; exclusive: ends the runtime
  std::mutex mutex;           // guards what follows, for compiling and closing, never for a run
  ShippedGraph shipping;
  Shipped shipped;
  std::map<std::string, CompileRequest> assignments;  // by the variables' names, dtypes and shapes
  GraphMarks marks;                                   // of the client's graph
  std::vector<GraphMark> awaited;    // of the restored graph: for nodes that are still to come
  std::recursive_mutex doing_once;   // held in once(): no state is saved meanwhile
  std::mutex initialising;           // held from checking variables to assigning them
  std::atomic<bool> any_run{false};  // if false, no variable has a value
  bool tracing = false;
  std::mutex numbers_mutex;
  RunNumbers numbers{1};  // guarded by numbers_mutex

  Runtime::Hooks told = {};
  caf::actor_system* const system;  // of the program; null: the runtime has its own
  const bool logs;                  // it can replace its workers
  std::atomic<bool> keeps{false};   // Session::keep was called
  std::shared_mutex gate;  // shared: starts a run or moves the place; exclusive: keeps the state
                           // or goes back to it (that thread is in `passes`)
  std::atomic<std::thread::id> passes{};
  std::atomic<std::uint64_t> generation{0};  // number of runtimes that were lost
  RunLog log;
  std::mutex runtime_mutex;  // guards the pointer, for threads that do not send
  // Guarded by `gate`.
  std::optional<JobState> kept;                        // none: the beginning of the session
  std::size_t looked_at = 0, functions_looked_at = 0;  // by order_matters()
  bool order_matters = false;
  RestartBudget recoveries{{}, 0};
  CommitNumber furthest = 0;  // the last commit at the time of a loss
  Status failed;              // not ok: it could not recover, and has no runtime
  std::function<bool()> stop_waiting;

  std::map<std::string, int> grown;  // by line: number of compiles for which it added nodes
  bool told_of_growth = false;

  SessionCore(GraphBuilder& g, Cluster c, caf::actor_system* s)
      : graph(g),
        graph_life(g.life()),
        cluster(std::move(c)),
        shipping(g),
        system(s),
        logs(cluster.workers > 0 || cluster.wait_for > 0) {}
};

}  // namespace detail

using detail::SessionCore;
using detail::Shipped;

namespace {

// Whether `method`, which waits for the runtime's actors, may be called on this thread.
Status may_wait(const SessionCore& core, std::string_view method) {
  if (detail::Callbacks::here())
    return failed_precondition(
        fmt::format("{} was called in a callback of PendingRun::then or Session::watch, on a "
                    "thread that the session itself may need: call it from another one",
                    method));
  if (!core.residents || !core.residents->on_scheduler()) return ok_status();
  return failed_precondition(
      fmt::format("{} was called from an event-based actor, on a thread that the session's own "
                  "actors need: call it from a thread of the program's, or from a blocking actor "
                  "or one spawned with caf::detached",
                  method));
}

// How long a new session waits for the actors of failed sessions in its system to end.
constexpr std::chrono::seconds kOverFaultWithin{10};

Status session_closed() { return failed_precondition("the session is closed"); }
Status no_step() {
  return failed_precondition("the CompiledStep is empty: Session::compile makes one");
}
Status no_run() {
  return failed_precondition("the PendingRun is empty: CompiledStep::start makes one");
}

// The client owns the graph, and may destroy it before the session.
Status graph_there(const SessionCore& core) {
  if (!core.graph_life.expired()) return ok_status();
  return failed_precondition("the session's graph is gone; it must live as long as it is used");
}
// The same for `method`, which also needs the client's graph.
Status may_ask_graph(const SessionCore& core, std::string_view method) {
  TROUPE_TRY(graph_there(core));
  return may_wait(core, method);
}

void refuse(Call& call, Status status) {
  CallResult result;
  result.status = std::move(status);
  call.finish(std::move(result));
}

// Attaches a Call that answers the message. If the master ends before it handles the message, the
// message's destructor answers.
template <class Message>
std::shared_ptr<Call> attach_call(const SessionCore& core, Message& message) {
  auto call = std::make_shared<Call>();
  if (Status fault = core.calls->add(call); !fault.ok()) {
    refuse(*call, std::move(fault));
    return call;
  }
  message.call = {call.get(), [call, calls = core.calls](Call*) {
                    if (call->done()) return;
                    refuse(*call, calls->unread());
                  }};
  return call;
}

template <class Message>
CallResult ask_master(SessionCore& core, Message message) {
  auto call = attach_call(core, message);
  if (!call->done()) caf::anon_send(core.master, std::move(message));
  return call->wait(false);
}

// Sends unless the session is closed; then the message is destroyed, which answers its call.
template <class Message, class Send>
void to_master(SessionCore& core, Message message, Send send) {
  std::shared_lock lock(core.sending);
  if (!core.closed && core.master) send(core.master, std::move(message));
}

template <class Message>
CallResult ask(SessionCore& core, Message message) {
  auto call = attach_call(core, message);
  if (!call->done())
    to_master(core, std::move(message),
              [](const MasterActor& master, Message m) { caf::anon_send(master, std::move(m)); });
  return call->wait(false);
}

// The answer has arrived: the master learns with the next run that it need not keep it.
void note_answer(SessionCore& core, const RunId& run) {
  std::lock_guard lock(core.numbers_mutex);
  if (run.session == core.id) core.numbers.answered(run.n);  // not of an earlier master
}

// An action with a number among the session's runs.
template <class Message>
CallResult ask_numbered(SessionCore& core, Message message) {
  {
    std::lock_guard lock(core.numbers_mutex);
    message.action = {core.id, core.numbers.next()};
    message.acknowledged = core.numbers.acknowledged();
  }
  const RunId action = message.action;
  CallResult result = ask(core, std::move(message));
  note_answer(core, action);
  return result;
}

Status check_graph(const SessionCore& core, const GraphBuilder& graph, std::string_view what) {
  if (&graph == &core.graph) return ok_status();
  if (const BodyState* body = graph.body())
    return invalid_argument(
        fmt::format("a {} is inside the body of function '{}' ({}): return it "
                    "from there, or push it into a queue",
                    what, body->function, body->site.text()));
  return invalid_argument(fmt::format("a {} belongs to another graph than the session's", what));
}

Expected<PortName> port_name(const SessionCore& core, const Output& output, std::string_view what) {
  if (output.empty()) return invalid_argument(fmt::format("an empty Output as {}", what));
  TROUPE_TRY(check_graph(core, output.graph(), what));
  const std::vector<NodeDef>& nodes = core.graph.def().nodes;
  if (output.node() >= nodes.size() || output.port().index >= nodes[output.node()].out_types.size())
    return invalid_argument(
        fmt::format("a {} is output {} of a node without it", what, output.port().index));
  return PortName{nodes[output.node()].name, int(output.port().index), false};
}

Expected<CompileRequest> make_request(const SessionCore& core, const std::vector<Output>& fetches,
                                      const std::vector<Op>& targets,
                                      const std::vector<Output>& feeds) {
  TROUPE_TRY(graph_there(core));
  CompileRequest request;
  request.replicas = core.cluster.replicas;
  for (const Output& fetch : fetches) {
    TROUPE_TRY(PortName name, port_name(core, fetch, "fetch"));
    request.fetches.push_back(std::move(name));
  }
  for (const Output& feed : feeds) {
    TROUPE_TRY(PortName name, port_name(core, feed, "feed"));
    request.feeds.push_back(std::move(name));
  }
  for (const Op& target : targets) {
    if (target.empty()) return invalid_argument("an empty Op as target");
    TROUPE_TRY(check_graph(core, target.graph(), "target"));
    if (target.node() >= core.graph.def().nodes.size())
      return invalid_argument("a target is a node that the graph does not have");
    request.targets.push_back(target.name());
  }
  return request;
}

// close_loop() sets an input of an existing Merge.
std::uint64_t hash_of_merges(const std::vector<NodeId>& merges, const GraphDef& def) {
  std::uint64_t hash = 0;
  for (NodeId id : merges)
    for (Port in : def.nodes[id].inputs) hash = hash_combine(hash_combine(hash, in.node), in.index);
  return hash;
}

// What the master will have of the graph once the nodes from `before.nodes` on are shipped.
Shipped shipped_with(Shipped before, const GraphDef& def, const OpRegistry& ops) {
  Shipped after = std::move(before);
  for (; after.functions < def.functions.size(); ++after.functions)
    after.hash = hash_functions(after.hash, def.functions[after.functions]);
  for (; after.nodes < def.nodes.size(); ++after.nodes) {
    const NodeDef& node = def.nodes[after.nodes];
    after.hash = hash_nodes(after.hash, node);
    const OpInfo* op = ops.find(node.op);
    if (op && op->def.role == Role::merge) after.merges.push_back(NodeId(after.nodes));
  }
  after.merges_hash = hash_of_merges(after.merges, def);
  return after;
}

// Ships new nodes, or the whole graph if a Merge has changed. REQUIRES: core.mutex is held.
Status ship(SessionCore& core) {
  const GraphDef& def = core.shipping.whole();
  const bool changed = hash_of_merges(core.shipped.merges, def) != core.shipped.merges_hash;
  if (core.shipped.nodes == def.nodes.size() && !changed) return ok_status();
  const Shipped before = changed ? Shipped{} : core.shipped;
  ExtendSession extend;
  extend.session = core.id;
  extend.from = before.nodes;
  extend.hash = before.hash;
  auto graph = std::make_shared<GraphDef>();
  graph->seed = def.seed;
  graph->nodes.assign(def.nodes.begin() + std::ptrdiff_t(before.nodes), def.nodes.end());
  graph->functions.assign(def.functions.begin() + std::ptrdiff_t(before.functions),
                          def.functions.end());
  extend.graph = std::move(graph);
  Shipped after = shipped_with(before, def, core.graph.registry());
  TROUPE_TRY(ask(core, std::move(extend)).status);
  core.shipped = std::move(after);
  return ok_status();
}

// REQUIRES: core.mutex is held, and the master has the nodes of the request.
Expected<CompiledId> compile_shipped(SessionCore& core, const CompileRequest& request) {
  CompileStep message;
  message.session = core.id;
  message.request = request;
  CallResult result = ask(core, std::move(message));
  TROUPE_TRY(result.status);
  return result.compiled;
}

// Warns of a line that adds nodes in a loop, which makes each run slower.
void tell_of_growth(SessionCore& core) {
  constexpr int kOften = 100;
  std::lock_guard lock(core.mutex);
  const bool grows = core.shipped.nodes > 0 && core.shipping.size() > core.shipped.nodes;
  if (core.told_of_growth || core.closed || !grows) return;
  const Site& line = core.graph.def().nodes.back().site;
  if (++core.grown[line.text()] < kOften) return;
  core.told_of_growth = true;
  TROUPE_LOG(warning, "session",
             fmt::format("{}: the graph got new nodes here before each of {} runs or compilations; "
                         "it grows, and each takes longer: make the nodes once, before the loop",
                         line.text(), kOften));
}

// Checks nodes that were added since a restore, if the restored graph had more nodes then: they
// must be the same. REQUIRES: core.mutex is held.
Status check_awaited(SessionCore& core) {
  const GraphDef& graph = core.graph.def();
  if (core.awaited.empty() || core.awaited.front().nodes > graph.nodes.size()) return ok_status();
  TROUPE_TRY(check_marks(graph, core.awaited));
  std::erase_if(core.awaited, [&](const GraphMark& mark) {
    return mark.nodes <= graph.nodes.size() && mark.functions <= graph.functions.size();
  });
  return ok_status();
}

Expected<CompiledId> compile_request(SessionCore& core, const CompileRequest& request) {
  std::lock_guard lock(core.mutex);
  if (core.closed) return session_closed();
  TROUPE_TRY(graph_there(core));
  TROUPE_TRY(check_awaited(core));
  TROUPE_TRY(ship(core));
  return compile_shipped(core, request);
}

// Compiles a step again. Called on any thread; does not read the client's graph, which may be
// growing.
Expected<CompiledId> compile_again(SessionCore& core, const CompileRequest& request) {
  std::lock_guard lock(core.mutex);
  if (core.closed) return session_closed();
  return compile_shipped(core, request);
}

Status check_note(const std::string& note) {
  if (note.empty()) return invalid_argument("an empty note: a run without one has no `note`");
  if (note.size() <= kMostNote) return ok_status();
  return invalid_argument(
      fmt::format("the note has {} bytes, and may have {}", note.size(), kMostNote));
}

constexpr std::chrono::nanoseconds kLongest = std::chrono::hours(24 * 365 * 100);  // of a timeout

// A run under way.
struct Run {
  std::shared_ptr<SessionCore> core;
  RunId id;  // 0: never sent
  std::shared_ptr<Call> call;
  std::uint64_t logged = 0;      // number in the session's log; 0: none
  std::uint64_t generation = 0;  // of the runtime that it was sent to
  std::atomic<bool> noted{false};
  DurableRuns::Clock::time_point until = DurableRuns::Clock::time_point::max();  // if held back

  // Notes the answer: for the log, the master and the watchers.
  static void note(SessionCore& core, const RunId& id, std::uint64_t logged,
                   const CallResult& result) {
    if (logged != 0) core.log.answered(logged, result);
    if (id.n != 0) note_answer(core, id);
    CommitNumber seen = core.committed.load();
    while (result.committed > seen) {
      if (!core.committed.compare_exchange_weak(seen, result.committed)) continue;
      return core.watchers->tell({SessionEvent::Kind::committed, result.committed, {}});
    }
  }
  CallResult& wait(bool spin = true) {
    // The Job, which also calls expire(), may be busy.
    if (until != DurableRuns::Clock::time_point::max() && !call->wait_until(until))
      (void)core->durable.expire(DurableRuns::Clock::now());
    CallResult& result = call->wait(spin);
    if (!noted.exchange(true)) note(*core, id, logged, result);
    return result;
  }
  // A run that nobody waits for is noted when it is answered.
  ~Run() {
    if (!call || noted) return;
    call->then([core = core, id = id, logged = logged](const CallResult& result) {
      note(*core, id, logged, result);
    });
  }
};

// A request and its last compiled step.
struct Step : std::enable_shared_from_this<Step> {
  std::shared_ptr<SessionCore> core;
  CompileRequest request;
  std::vector<FeedSpec> feeds;
  std::atomic<CompiledId> id{0};
  std::atomic<std::uint64_t> generation{0};  // of the runtime that compiled it
  bool with_place = false;  // a step of the session itself: answers contain the job's place
  bool only_reads = false;  // changes nothing, not even places of datasets
  bool takes = false;       // elements of queues
  std::shared_ptr<const JobPlace> resume;  // the place of a job that its runs restore

  // Was compiled by the runtime of that generation.
  void is(CompiledId compiled, std::uint64_t of) {
    id = compiled;
    generation = of;
  }
};

RunLog::Outcome run_again(const std::shared_ptr<Step>& step, const std::vector<Tensor>& feeds,
                          const RunOptions& options);

bool is_logged(const SessionCore& core) {
  return core.logs && core.passes.load() != std::this_thread::get_id();
}

// Calls `f`, which moves the place of the job, while no thread keeps the state or goes back to it.
template <class F>
auto at_gate(SessionCore& core, F f) -> decltype(f()) {
  std::shared_lock<std::shared_mutex> open;
  if (is_logged(core)) open = std::shared_lock(core.gate);
  return f();
}

// Calls `f`, which moves the place of the job, and logs it, so that a recovery repeats it.
Status move_at_gate(SessionCore& core, const std::function<CallResult()>& f) {
  return at_gate(core, [&] {
    const CallResult result = f();
    if (result.status.ok() && is_logged(core))
      core.log.enter_done([f] { return RunLog::Outcome{f().status.code(), 0, 0}; }, result.seen);
    return result.status;
  });
}

// Enters the run into the session's log, so that a recovery repeats it.
void enter(const Step& step, const std::vector<Tensor>& feeds, const RunOptions& options,
           Run& run) {
  SessionCore& core = *step.core;
  run.generation = core.generation;
  if (step.only_reads || !is_logged(core)) return;
  if (!core.keeps) {  // there is no state to repeat it from
    run.logged = core.log.enter(run.call, 0, nullptr, step.takes);
    return;
  }
  std::size_t bytes = options.note ? options.note->size() : 0;
  for (const Tensor& feed : feeds) bytes += feed.bytes();
  RunOptions again = options;
  again.timeout.reset();
  again.dropped.reset();  // already counted
  again.staleness.reset();
  again.durable = false;  // the client already waits
  auto same = std::const_pointer_cast<Step>(step.shared_from_this());
  run.logged = core.log.enter(
      run.call, bytes, [same, feeds, again] { return run_again(same, feeds, again); }, step.takes);
}

DurableRuns::Clock::time_point deadline_of(const RunOptions& options) {
  using Clock = DurableRuns::Clock;
  if (!options.timeout || *options.timeout >= kLongest) return Clock::time_point::max();
  return Clock::now() + std::chrono::duration_cast<Clock::duration>(*options.timeout);
}

// Delays the answer until a checkpoint contains the run: the client waits for another Call than the
// one that the master finishes.
void hold_back(Run& run, DurableRuns::Clock::time_point until) {
  const std::shared_ptr<Call> inner = std::exchange(run.call, std::make_shared<Call>());
  run.noted = true;
  run.until = until;
  inner->then([core = run.core, id = run.id, logged = run.logged, until,
               outer = run.call](const CallResult& result) {
    Run::note(*core, id, logged, result);
    if (!result.status.ok()) return outer->finish(result);
    const CommitNumber has = result.committed != 0 ? result.committed : result.seen;
    core->durable.wait(
        has, until,
        [outer, result](Status status) {
          CallResult answer = result;
          answer.status = std::move(status);
          outer->finish(std::move(answer));
        },
        !result.moved);
  });
}

void start(const Step& step, std::vector<Tensor> feeds, const RunOptions& options, Run& run,
           LentThread* waiter = nullptr) {
  run.core = step.core;
  Status status = check_feeds(step.feeds, feeds);
  if (status.ok() && options.durable) status = run.core->durable.available();
  if (status.ok() && options.timeout && options.timeout->count() <= 0)
    status = deadline_exceeded("the run's timeout had passed before it began");
  if (status.ok() && options.note) status = check_note(*options.note);
  if (!status.ok()) {
    run.call = std::make_shared<Call>();
    return refuse(*run.call, std::move(status));
  }
  SessionCore& core = *step.core;
  std::shared_lock<std::shared_mutex> open;
  if (is_logged(core)) open = std::shared_lock(core.gate);
  if (step.generation != core.generation || !core.failed.ok()) {  // of a lost runtime
    run.call = std::make_shared<Call>();
    CallResult result;
    result.unloaded = core.failed.ok();
    result.status =
        core.failed.ok() ? unavailable("the step is of a runtime that was lost") : core.failed;
    return run.call->finish(std::move(result));
  }
  RunStep message;
  {
    std::lock_guard lock(core.numbers_mutex);
    run.id = {core.id, core.numbers.next()};
    message.acknowledged = core.numbers.acknowledged();
  }
  if (!core.any_run.load(std::memory_order_relaxed)) core.any_run = true;
  if (waiter) waiter->wait_for(burst_name(run.id));
  message.run = run.id;
  message.compiled = step.id.load();
  message.timeout = options.timeout && *options.timeout < kLongest ? *options.timeout : kNever;
  message.with_place = step.with_place;
  message.on_nan = options.on_nan;
  message.commit = options.commit;
  message.resume = step.resume;
  if (options.note) message.note = std::make_shared<const std::string>(*options.note);
  run.call = attach_call(core, message);
  if (run.call->done()) return;
  enter(step, feeds, options, run);
  if (options.durable) hold_back(run, deadline_of(options));
  message.feeds = std::move(feeds);
  to_master(core, std::move(message),
            [](const MasterActor& master, RunStep m) { send_inline(master, std::move(m)); });
}

// Tells how stale a run was, and counts one that was not committed because of a NaN.
void count(const RunOptions& options, const CallResult& result) {
  if (options.staleness && options.commit == Commit::immediate && result.committed != 0)
    options.staleness->note(result.behind);
  if (options.on_nan != OnNan::drop || !options.dropped || result.committed != 0) return;
  if (std::any_of(result.fetches.begin(), result.fetches.end(),
                  [](const Tensor& value) { return value.has_nan(); }))
    ++*options.dropped;
}

// Compiles the step in the current runtime.
Status compile_anew(Step& step, CompiledId used) {
  const std::uint64_t generation = step.core->generation;
  TROUPE_TRY(CompiledId again, compile_again(*step.core, step.request));
  if (step.generation == generation)
    step.id.compare_exchange_strong(used, again);
  else
    step.is(again, generation);
  return ok_status();
}

Expected<CallResult> run_in_this_runtime(Step& step, const std::vector<Tensor>& feeds,
                                         const RunOptions& options) {
  for (int tries = 0;; ++tries) {
    CompiledId used = step.id.load();
    Run run;
    // A run with a timeout must be able to return while a kernel still computes.
    std::optional<LentThread> here;
    if (!options.timeout) here.emplace();
    start(step, feeds, options, run, here ? &*here : nullptr);
    const bool waited = here && here->work([&] { return run.call->done(); });
    CallResult& result = run.wait(!waited);
    if (result.status.ok()) {
      count(options, result);
      return std::move(result);
    }
    // If many steps are compiled, the least recently used are unloaded: compile it again.
    if (tries > 0 || !result.unloaded) return result.status;
    TROUPE_TRY(compile_anew(step, used));
  }
}

Status recover(const std::shared_ptr<SessionCore>& core, std::uint64_t lost, const Status& why);

const Status& status_of(const Status& status) { return status; }
template <class T>
const Status& status_of(const Expected<T>& result) {
  return result.status();
}

// Calls `f`; again in another runtime each time that a part is lost and the session can recover
// from a kept state.
template <class F>
auto in_some_runtime(const std::shared_ptr<SessionCore>& core, F f) -> decltype(f()) {
  for (;;) {
    const std::uint64_t generation = core->generation;
    auto result = f();
    if (result.ok()) return result;
    const Status& status = status_of(result);
    const bool again = core->generation != generation;
    if ((!again && status.code() != Code::unavailable) || !core->keeps ||
        core->passes.load() == std::this_thread::get_id())
      return result;
    if (Status recovered = recover(core, generation, status); !recovered.ok()) return recovered;
  }
}

// Compiles a new step, by compile_request or compile_again.
Status compile_first(Step& step,
                     Expected<CompiledId> compile(SessionCore&, const CompileRequest&)) {
  return in_some_runtime(step.core, [&]() -> Status {
    const std::uint64_t generation = step.core->generation;
    TROUPE_TRY(const CompiledId id, compile(*step.core, step.request));
    step.is(id, generation);
    return ok_status();
  });
}

Expected<CallResult> run_to_end(Step& step, const std::vector<Tensor>& feeds,
                                const RunOptions& options) {
  using Clock = std::chrono::steady_clock;
  RunOptions now = options;
  const Clock::time_point began = Clock::now();
  return in_some_runtime(step.core, [&] {
    if (options.timeout && options.timeout->count() > 0 && *options.timeout < kLongest) {
      // The time of a recovery counts.
      const auto left = *options.timeout - (Clock::now() - began);
      now.timeout = std::max(std::chrono::nanoseconds(0),
                             std::chrono::duration_cast<std::chrono::nanoseconds>(left));
    }
    return run_in_this_runtime(step, feeds, now);
  });
}

RunLog::Outcome run_again(const std::shared_ptr<Step>& step, const std::vector<Tensor>& feeds,
                          const RunOptions& options) {
  auto result = run_in_this_runtime(*step, feeds, options);
  if (result.ok()) return RunLog::outcome_of(*result);
  return {result.status().code(), 0, 0};
}

}  // namespace

struct PendingRun::State : Run {
  RunOptions options;
  std::atomic<bool> counted{false};
  // The fetches or the error. Waits only for the run.
  Expected<std::vector<Tensor>> fetched();
};
struct CompiledStep::State : Step {};

bool PendingRun::done() const {
  if (!state_) throw Error(no_run());
  return state_->call->done();
}

CommitNumber PendingRun::committed() const {
  if (!done()) throw Error(failed_precondition("the run is still under way"));
  return state_->call->result().committed;
}

bool PendingRun::unloaded() const { return done() && state_->call->result().unloaded; }

void PendingRun::cancel() {
  if (!state_) throw Error(no_run());
  CancelRun message{state_->id, cancelled("the client cancelled the run")};
  to_master(*state_->core, std::move(message),
            [](const MasterActor& master, CancelRun m) { caf::anon_send(master, std::move(m)); });
}

Expected<std::vector<Tensor>> PendingRun::State::fetched() {
  const CallResult& result = wait();
  if (!result.status.ok()) return result.status;
  if (!counted.exchange(true)) count(options, result);
  return result.fetches;
}

Expected<std::vector<Tensor>> PendingRun::try_get() {
  if (!state_) return no_run();
  SessionCore& core = *state_->core;
  if (!done()) {
    TROUPE_TRY(may_wait(core, "PendingRun::get"));
    if (state_->options.durable) TROUPE_TRY(core.durable.may_wait("PendingRun::get"));
  }
  auto fetched = state_->fetched();
  if (fetched.status().code() == Code::unavailable && core.keeps && committed() == 0 &&
      core.passes.load() != std::this_thread::get_id() && may_wait(core, "PendingRun::get").ok())
    (void)recover(state_->core, state_->generation, fetched.status());  // for later runs
  return fetched;
}

void PendingRun::then(std::function<void(Expected<std::vector<Tensor>>)> f) {
  if (!state_) throw Error(no_run());
  if (!f) throw Error(invalid_argument("PendingRun::then with nothing to call"));
  state_->call->then([state = state_, f = std::move(f)](const CallResult&) mutable {
    state->core->callbacks->call([state, f = std::exchange(f, nullptr)] { f(state->fetched()); });
  });
}

Status CompiledStep::try_rewind() const {
  if (!state_) return no_step();
  TROUPE_TRY(may_wait(*state_->core, "CompiledStep::rewind"));
  const auto rewind = [state = state_]() -> CallResult {
    Step& step = *state;
    for (int tries = 0;; ++tries) {
      CompiledId used = step.id.load();
      CallResult result;
      result.unloaded = step.generation != step.core->generation;
      if (!result.unloaded)
        result = ask_numbered(*step.core, RewindStep{step.core->id, used, nullptr});
      if (tries > 0 || !result.unloaded) return result;
      result.status = compile_anew(step, used);
      if (!result.status.ok()) return result;
    }
  };
  return move_at_gate(*state_->core, rewind);
}

Expected<std::optional<std::vector<Tensor>>> CompiledStep::try_next(
    const RunOptions& options) const {
  Expected<std::vector<Tensor>> fetched = try_run({}, options);
  if (!fetched.ok() && is_dataset_end(fetched.status()))
    return std::optional<std::vector<Tensor>>();
  TROUPE_TRY(fetched.status());
  return std::optional(std::move(fetched).value());
}

Expected<CompiledStep> CompiledStep::try_single() const {
  if (!state_) return no_step();
  if (state_->request.replicas == 1) return *this;
  TROUPE_TRY(may_wait(*state_->core, "CompiledStep::single"));
  CompileRequest request = state_->request;
  request.replicas = 1;
  CompiledStep one;
  one.state_ = std::make_shared<State>();
  one.state_->core = state_->core;
  one.state_->request = std::move(request);
  one.state_->feeds = state_->feeds;
  one.state_->takes = state_->takes;
  // Does not need nodes that the client has added since.
  TROUPE_TRY(compile_first(*one.state_, compile_again));
  return one;
}

Status CompiledStep::try_load() const {
  if (!state_) return no_step();
  TROUPE_TRY(may_wait(*state_->core, "CompiledStep::load"));
  return compile_anew(*state_, state_->id);
}

PendingRun CompiledStep::start(std::vector<Tensor> feeds, const RunOptions& options) const {
  if (!state_) throw Error(no_step());
  if (state_->generation != state_->core->generation &&
      may_wait(*state_->core, "CompiledStep::start").ok())
    throw_if_error(compile_anew(*state_, state_->id));
  PendingRun pending;
  pending.state_ = std::make_shared<PendingRun::State>();
  pending.state_->options.on_nan = options.on_nan;
  pending.state_->options.dropped = options.dropped;
  pending.state_->options.commit = options.commit;
  pending.state_->options.staleness = options.staleness;
  pending.state_->options.durable = options.durable;
  troupe::start(*state_, std::move(feeds), options, *pending.state_);
  return pending;
}

Expected<std::vector<Tensor>> CompiledStep::try_run(std::vector<Tensor> feeds,
                                                    const RunOptions& options) const {
  if (!state_) return no_step();
  TROUPE_TRY(may_wait(*state_->core, "CompiledStep::run"));
  if (options.durable) TROUPE_TRY(state_->core->durable.may_wait("CompiledStep::run"));
  TROUPE_TRY(CallResult result, run_to_end(*state_, feeds, options));
  return std::move(result.fetches);
}

Status CompiledStep::check_scalars(const std::vector<Tensor>& fetched,
                                   std::initializer_list<DType> wanted) {
  if (fetched.size() != wanted.size())
    return invalid_argument(
        fmt::format("the step fetches {} values, not {}", fetched.size(), wanted.size()));
  auto value = fetched.begin();
  for (DType dtype : wanted) {
    if (value->dtype() != dtype || value->elements() != 1)
      return invalid_argument(fmt::format("fetch {} is {}{}, not one {}", value - fetched.begin(),
                                          dtype_name(value->dtype()), value->shape().text(),
                                          dtype_name(dtype)));
    ++value;
  }
  return ok_status();
}

namespace {

// Callbacks are held back until the session is closed.
Status end_session(SessionCore& core) {
  const detail::CallbacksHeld held(core.callbacks);
  std::unique_lock nobody_recovers(core.gate);
  {
    std::lock_guard lock(core.mutex);
    if (core.closed) return ok_status();
    core.closed = true;
  }
  core.log.broke("the session is closed");  // drops its steps, which own the session
  Status status;
  if (core.master) status = ask_master(core, CloseSession{core.id, nullptr}).status;
  std::unique_lock nobody_sends(core.sending);
  if (core.calls->fault().ok())
    core.runtime.reset();
  else
    Runtime::abandon(std::move(core.runtime), core.residents != nullptr);
  if (core.residents) core.residents->forget(core.resident);
  core.durable.ended(session_closed());
  if (core.calls->fault().ok() && core.failed.ok())
    core.watchers->tell({SessionEvent::Kind::ended, core.committed, ok_status()});
  return status;
}

// The answers to `troupe status` and `troupe why-blocked` (ControlSocket), made on its thread.
nlohmann::ordered_json json_of(const Wait& wait) {
  nlohmann::ordered_json json = {{"on", name_of(wait.on)}, {"run", wait.run}};
  const std::pair<const char*, const std::string*> texts[] = {
      {"node", &wait.node},     {"op", &wait.op},     {"line", &wait.site},
      {"device", &wait.device}, {"task", &wait.task}, {"waits_for", &wait.what}};
  for (const auto& [name, text] : texts)
    if (!text->empty()) json[name] = *text;
  json["seconds"] = wait.seconds;
  json["run_seconds"] = wait.age;
  if (wait.left) json["timeout_in_seconds"] = *wait.left;
  json["text"] = wait.text();
  return json;
}

nlohmann::ordered_json answer_control(SessionCore& core, std::string_view question) {
  nlohmann::ordered_json json = nlohmann::ordered_json::object();
  CallResult result = ask(core, AskJobWaits{});
  if (!result.status.ok()) json["error"] = result.status.text();
  json["waits"] = nlohmann::ordered_json::array();
  const std::string own = fmt::format(" of session {}", core.id);  // left out: all are of it
  for (Wait& wait : result.waits) {
    if (wait.run.ends_with(own)) wait.run.resize(wait.run.size() - own.size());
    json["waits"].push_back(json_of(wait));
  }
  if (question != ControlSocket::kStatus) return json;
  json["tasks"] = ask(core, DescribeJob{}).text;
  json["committed"] = core.committed.load();
  json["recoveries"] = std::uint64_t(core.generation);
  // There is no runtime while it is being replaced.
  std::unique_lock lock(core.runtime_mutex, std::try_to_lock);
  if (!lock.owns_lock() || !core.runtime) return json;
  json["memory"] = nlohmann::ordered_json::array();
  for (const DeviceMemory& each : core.runtime->memory(false))
    json["memory"].push_back(
        {{"device", each.device}, {"bytes", each.in_use}, {"peak", each.peak}});
  return json;
}

std::shared_ptr<SessionCore> open(GraphBuilder& graph, Cluster cluster, caf::actor_system* system) {
  end_with_code_if_uncaught();
  auto core = std::make_shared<SessionCore>(graph, std::move(cluster), system);
  auto& told = core->told;
  told.fault = [calls = core->calls, watchers = core->watchers](const std::string& what) {
    const Status fault = internal_error("a fault of the runtime: " + what);
    const bool first = calls->fault().ok();
    if (first) TROUPE_LOG(error, "session", fault.message());
    calls->fail(fault);
    if (first) watchers->tell({SessionEvent::Kind::ended, 0, fault});
  };
  told.lost = [watchers = core->watchers](const Status& what) {
    watchers->tell({SessionEvent::Kind::lost, 0, what});
  };
  if (system) {
    core->residents = Residents::in(*system);
    throw_if_error(may_wait(*core, "Session::Session"));
    if (!core->residents->over_fault(kOverFaultWithin))
      throw Error(internal_error("actors of sessions that failed do not leave the actor system"));
    core->resident = core->residents->opens(told.fault);
  }
  try {
    core->runtime = value_or_throw(Runtime::start(core->cluster, system, told));
    core->master = core->runtime->master();
    core->id = machine_random();
    throw_if_error(ask_master(*core, OpenSession{core->id, nullptr}).status);
  } catch (...) {
    if (core->residents) core->residents->forget(core->resident);
    throw;
  }
  if (core->residents)
    core->residents->at_end(core->resident, [weak = std::weak_ptr(core)] {
      if (auto open = weak.lock()) (void)end_session(*open);
    });
  if (ControlSocket* socket = ControlSocket::of_this_process())
    socket->add_session([weak = std::weak_ptr(core)](std::string_view question) {
      const auto open = weak.lock();
      return open && !open->closed ? answer_control(*open, question) : nlohmann::ordered_json();
    });
  return core;
}

}  // namespace

Session::Session(GraphBuilder& graph, Cluster cluster)
    : core_(open(graph, std::move(cluster), nullptr)) {}

Session::Session(GraphBuilder& graph, caf::actor_system& system, Cluster cluster)
    : core_(open(graph, std::move(cluster), &system)) {}

Session::Session(GraphDef graph, Cluster cluster)
    : core_([&] {
        auto owned = std::make_unique<Graph>(std::move(graph));
        auto core = open(*owned, std::move(cluster), nullptr);
        core->owned = std::move(owned);
        return core;
      }()) {}

GraphBuilder& Session::graph() {
  throw_if_error(graph_there(*core_));
  return core_->graph;
}

// On a thread that must not wait (the session is owned by an event-based actor or a callback),
// another thread closes it.
Session::~Session() {
  if (may_wait(*core_, "Session::~Session").ok())
    (void)end_session(*core_);
  else if (core_->residents)
    core_->residents->aside([core = core_] { (void)end_session(*core); });
  else
    std::thread([core = core_] { (void)end_session(*core); }).detach();
}

Expected<CompiledStep> Session::try_compile(const std::vector<Output>& fetches,
                                            const std::vector<Op>& targets,
                                            const std::vector<Output>& feeds,
                                            const CompileOptions& options) {
  TROUPE_TRY(may_wait(*core_, "Session::compile"));
  TROUPE_TRY(CompileRequest request, make_request(*core_, fetches, targets, feeds));
  if (options.replicas < 0)
    return invalid_argument(
        fmt::format("CompileOptions::replicas is a number from 0 (the cluster's) to 1024, not {}",
                    options.replicas));
  tell_of_growth(*core_);
  if (options.replicas != 0) request.replicas = options.replicas;
  CompiledStep step;
  step.state_ = std::make_shared<CompiledStep::State>();
  step.state_->core = core_;
  step.state_->request = std::move(request);
  if (core_->logs) {
    std::vector<NodeId> wanted;
    for (const Output& fetch : fetches) wanted.push_back(fetch.node());
    for (const Op& target : targets) wanted.push_back(target.node());
    step.state_->takes = takes_elements(core_->graph, std::move(wanted));
  }
  TROUPE_TRY(compile_first(*step.state_, compile_request));
  for (const Output& feed : feeds)
    step.state_->feeds.push_back({feed.name(), feed.dtype(), feed.shape()});
  return step;
}

Expected<std::vector<Tensor>> Session::try_run(const std::vector<Output>& fetches,
                                               const std::vector<Op>& targets,
                                               const std::vector<Feed>& feeds,
                                               const RunOptions& options) {
  TROUPE_TRY(may_wait(*core_, "Session::run"));
  std::vector<Output> ports;
  std::vector<Tensor> values;
  for (const Feed& feed : feeds) {
    ports.push_back(feed.port);
    values.push_back(feed.value);
  }
  TROUPE_TRY(CompiledStep step, try_compile(fetches, targets, ports));
  return step.try_run(std::move(values), options);
}

namespace {

// The origin of a run: the session itself may write before the program has asked for its place.
enum class RunFor : std::uint8_t { session, program };

// Runs a request once, as one replica.
Expected<CallResult> run_single(const std::shared_ptr<SessionCore>& core, CompileRequest request,
                                std::vector<Tensor> feeds, RunFor whom = RunFor::session,
                                bool only_reads = false,
                                std::shared_ptr<const JobPlace> resume = nullptr) {
  request.replicas = 1;
  const auto step = std::make_shared<Step>();
  step->core = core;
  step->with_place = whom == RunFor::session;
  step->only_reads = only_reads;
  step->resume = std::move(resume);
  for (std::size_t i = 0; i < feeds.size(); ++i)
    step->feeds.push_back({request.feeds[i].text(), feeds[i].dtype(), feeds[i].shape()});
  step->request = std::move(request);
  TROUPE_TRY(compile_first(*step, compile_request));
  return run_to_end(*step, feeds, {});
}

// A queue or a resource of a kind that the program defines, with its first handle.
struct NamedHandle {
  NodeId node;
  ResourceName resource;
};

std::vector<NamedHandle> other_resources(const GraphBuilder& graph) {
  std::vector<NamedHandle> all;
  std::set<ResourceName> known;
  const auto& nodes = graph.def().nodes;
  for (NodeId id = 0; id < nodes.size(); ++id) {
    const OpInfo* op = graph.registry().find(nodes[id].op);
    if (!op || op->def.role != Role::handle) continue;
    const std::string& kind = op->def.external.resource;
    if (kind == "variable" || kind == "dataset" || kind == kMutexKind) continue;
    ResourceName name{kind, resource_container(nodes[id]), resource_name(nodes[id])};
    if (known.insert(name).second) all.push_back({id, std::move(name)});
  }
  return all;
}

// The handles of these resources, in order.
Expected<std::vector<NodeId>> handles_of(const GraphBuilder& graph,
                                         const std::vector<SavedResource>& resources) {
  if (resources.empty()) return std::vector<NodeId>();
  std::map<ResourceName, NodeId> known;
  for (const NamedHandle& each : other_resources(graph)) known.emplace(each.resource, each.node);
  std::vector<NodeId> handles;
  for (const SavedResource& each : resources) {
    TROUPE_TRY(state_of(each.state).status().in("in the state of " + each.resource.text()));
    auto found = known.extract(each.resource);
    if (found.empty())
      return not_found(
          fmt::format("the graph has no {}, or it is there twice", each.resource.text()));
    handles.push_back(found.mapped());
  }
  return handles;
}

// Refuses places of unknown datasets, which would be ignored silently.
Status check_datasets(const GraphBuilder& graph, const std::vector<DatasetPlace>& datasets) {
  for (const DatasetPlace& place : datasets) {
    auto is_it = [&](const NodeDef& node) {
      const OpInfo* op = graph.registry().find(node.op);
      if (!op || op->def.role != Role::handle || op->def.external.resource != "dataset" ||
          resource_name(node) != place.dataset.name)
        return false;
      return place.dataset.container == resource_container(node);
    };
    const auto& nodes = graph.def().nodes;
    if (std::none_of(nodes.begin(), nodes.end(), is_it))
      return not_found(fmt::format("the graph has no dataset '{}'", place.dataset.name));
  }
  return ok_status();
}

// A variable, and a node that reads it at the run's snapshot.
struct VariableRead {
  const NodeDef* variable;
  const NodeDef* read;
};

std::vector<VariableRead> variable_reads(const GraphDef& graph) {
  std::vector<VariableRead> reads;
  std::unordered_set<NodeId> known;
  for (const NodeDef& node : graph.nodes)
    if (node.op == "ReadVariable" && node.control.empty() &&
        known.insert(node.inputs[0].node).second)
      reads.push_back({&graph.nodes[node.inputs[0].node], &node});
  return reads;
}

// Each variable once, even if it has several handles. already_exists if two variables would have
// the same name in a checkpoint.
Expected<std::vector<VariableRead>> state_reads(const GraphDef& graph) {
  std::vector<VariableRead> reads;
  std::map<std::string, const NodeDef*> known;
  for (const VariableRead& each : variable_reads(graph)) {
    const NodeDef& variable = *each.variable;
    const auto [at, fresh] = known.emplace(state_name(variable), &variable);
    if (fresh) reads.push_back(each);
    if (!fresh && resource_container(variable) != resource_container(*at->second))
      return already_exists(fmt::format("'{}' ({}) and '{}' ({}) would both be saved as '{}'",
                                        at->second->name, at->second->site.text(), variable.name,
                                        variable.site.text(), at->first));
  }
  return reads;
}

void take_place(JobPlace place, JobState& state) {
  state.committed = place.committed;
  state.datasets = std::move(place.datasets);
  state.note = std::move(place.note);
  state.once = std::move(place.once);
  state.fetches = std::move(place.fetches);
  state.draws = place.draws;
}

// Reads these variables and resources in one run. Without any, the state is empty.
Expected<JobState> read_state(const std::shared_ptr<SessionCore>& core,
                              const std::vector<VariableRead>& variables,
                              const std::vector<NamedHandle>& resources = {}) {
  CompileRequest request;
  std::vector<std::string> names;
  for (const VariableRead& each : variables) {
    names.push_back(each.variable->name);
    request.fetches.push_back({each.read->name, 0, false});
  }
  JobState state;
  if (!resources.empty()) {
    std::vector<NodeId> handles;
    for (const NamedHandle& each : resources) handles.push_back(each.node);
    std::lock_guard lock(core->mutex);
    TROUPE_TRY(core->shipping.add_saves(handles, request));
  }
  if (request.fetches.empty()) return state;
  TROUPE_TRY(CallResult result,
             run_single(core, std::move(request), {}, RunFor::session, /*only_reads=*/true));
  take_place(std::move(result.place), state);
  for (std::size_t i = 0; i < names.size(); ++i)
    state.variables.emplace_back(names[i], std::move(result.fetches[i]));
  for (std::size_t i = 0; i < resources.size(); ++i)
    state.resources.push_back({resources[i].resource, std::move(result.fetches[names.size() + i])});
  return state;
}

}  // namespace

namespace {

// The assignment of a variable's initial value.
struct Initializer {
  NodeId assign, handle;
};

std::vector<Initializer> initializers_of(const GraphBuilder& graph) {
  std::vector<Initializer> all;
  for (NodeId assign : graph.initializers())
    all.push_back({assign, graph.node(assign).inputs[0].node});
  return all;
}

// The initializers of variables without a value. REQUIRES: core.initialising is held.
Expected<std::vector<Initializer>> without_value(const std::shared_ptr<SessionCore>& core,
                                                 std::vector<Initializer> of) {
  if (of.empty() || !core->any_run) return of;
  std::vector<NodeId> handles;
  for (const Initializer& each : of) handles.push_back(each.handle);
  std::unique_lock lock(core->mutex);
  TROUPE_TRY(CompileRequest request, core->shipping.add_checks(handles));
  lock.unlock();
  TROUPE_TRY(const CallResult result,
             run_single(core, std::move(request), {}, RunFor::session, /*only_reads=*/true));
  std::vector<Initializer> left;
  for (std::size_t i = 0; i < of.size(); ++i)
    if (!result.fetches.at(i).item<bool>()) left.push_back(of[i]);
  return left;
}

void add_targets(const GraphBuilder& graph, const std::vector<Initializer>& initializers,
                 CompileRequest& request) {
  for (const Initializer& each : initializers)
    request.targets.push_back(graph.node(each.assign).name);
}

}  // namespace

Status Session::try_init(const InitOptions& options) {
  TROUPE_TRY(may_ask_graph(*core_, "Session::init"));
  for (NodeId node : core_->graph.initializers())
    if (node >= core_->graph.def().nodes.size() || core_->graph.node(node).inputs.empty())
      return invalid_argument("an initializer is no node of the graph that assigns a variable");
  std::lock_guard lock(core_->initialising);
  std::vector<Initializer> assigned = initializers_of(core_->graph);
  if (!options.reset) {
    TROUPE_TRY(assigned, without_value(core_, std::move(assigned)));
  }
  CompileRequest request;
  add_targets(core_->graph, assigned, request);
  if (request.targets.empty()) return ok_status();
  // Overwriting values may undo work of the program; initialising the others does not.
  const RunFor whom = options.reset ? RunFor::program : RunFor::session;
  return run_single(core_, std::move(request), {}, whom).status();
}

Expected<std::vector<std::pair<std::string, Tensor>>> Session::try_variables() {
  TROUPE_TRY(may_ask_graph(*core_, "Session::variables"));
  TROUPE_TRY(JobState state, read_state(core_, variable_reads(core_->graph.def())));
  return std::move(state.variables);
}

namespace {

// The CPU of the task that has each variable; "" for one that is not placed yet.
Expected<std::vector<std::string>> hosts_of(SessionCore& core,
                                            const std::vector<const NodeDef*>& variables) {
  AskHomes message;
  for (const NodeDef* each : variables)
    message.variables.emplace_back(resource_container(*each), resource_name(*each));
  CallResult result = ask(core, std::move(message));
  TROUPE_TRY(result.status);
  if (result.text.size() != variables.size())
    return internal_error("the master does not know where the variables are");
  for (std::string& home : result.text) {
    if (home.empty()) continue;
    TROUPE_TRY(DeviceName device, DeviceName::parse(home));
    device.type = "CPU";
    device.index = 0;
    home = device.text();
  }
  return std::move(result.text);
}

}  // namespace

struct PendingState::State {
  Step step;
  Run run;
  std::set<std::string> variables;  // still to be written
  WrittenState written;             // as far as known
  bool whole = false;               // `written` is complete
  CommitNumber resources_of = 0;    // the commit that these are of; 0: there are none
};

Expected<WrittenState> PendingState::try_get() {
  State& s = *state_;
  if (s.whole) return std::move(s.written);
  CallResult& result = s.run.wait(/*spin=*/false);
  TROUPE_TRY(result.status);
  for (const Tensor& answer : result.fetches) {
    if (answer.dtype() != DType::string || answer.rank() != 0)
      return internal_error("who wrote a shard did not say what it wrote");
    TROUPE_TRY(const auto shards, parse_shards(answer.item<std::string>()));
    for (const CheckpointFile& shard : shards) {
      for (const StoredTensor& each : shard.tensors)
        if (s.variables.erase(each.name) == 0)
          return internal_error("a shard has '" + each.name + "', which it was not asked for");
      s.written.shards.push_back(shard);
    }
  }
  if (!s.variables.empty()) return internal_error("no shard has '" + *s.variables.begin() + "'");
  if (s.resources_of != 0 && result.place.committed != s.resources_of)
    return aborted("another run committed while the state was taken");
  take_place(std::move(result.place), s.written.state);
  s.whole = true;
  return std::move(s.written);
}

Expected<PendingState> Session::start_state(const std::string& folder, const std::string& token,
                                            bool refuse_nan) {
  TROUPE_TRY(may_ask_graph(*core_, "Session::start_state"));
  std::lock_guard not_amid_once(core_->doing_once);
  PendingState pending;
  pending.state_ = std::make_shared<PendingState::State>();
  PendingState::State& s = *pending.state_;
  const std::vector<NamedHandle> resources = other_resources(core_->graph);
  const GraphDef& graph = core_->graph.def();
  TROUPE_TRY(const auto reads, state_reads(graph));
  if (reads.empty() && resources.empty())
    return failed_precondition("the graph reads no variable: there is no state to save");
  if (reads.empty()) {
    TROUPE_TRY(s.written.state, try_state());
    s.whole = true;
    return pending;
  }
  if (!resources.empty()) {
    TROUPE_TRY(s.written.state, read_state(core_, {}, resources));
    s.resources_of = s.written.state.committed;
  }
  std::vector<const NodeDef*> variables;
  for (const VariableRead& each : reads) variables.push_back(each.variable);
  TROUPE_TRY(const std::vector<std::string> hosts, hosts_of(*core_, variables));
  std::map<std::string, ShippedGraph::ShardSave> saves;
  for (std::size_t i = 0; i < reads.size(); ++i) {
    ShippedGraph::ShardSave& save = saves[hosts[i]];
    save.device = hosts[i];
    save.names.push_back(state_name(*variables[i]));
    save.reads.push_back(NodeId(reads[i].read - graph.nodes.data()));
    s.variables.insert(save.names.back());
  }
  std::vector<ShippedGraph::ShardSave> all;
  for (auto& [_, save] : saves) all.push_back(std::move(save));
  {
    std::lock_guard lock(core_->mutex);
    TROUPE_TRY(s.step.request, core_->shipping.add_shard_saves(all, refuse_nan));
    s.written.state.graph = core_->marks.of(graph);
    s.written.state.seed = graph.seed;
  }
  s.step.request.replicas = 1;
  s.step.core = core_;
  s.step.with_place = s.step.only_reads = true;
  for (const PortName& feed : s.step.request.feeds)
    s.step.feeds.push_back({feed.text(), DType::string, PartialShape{}});
  TROUPE_TRY(compile_first(s.step, compile_request));
  troupe::start(s.step, {Tensor::scalar(folder), Tensor::scalar(token)}, {}, s.run);
  if (s.resources_of == 0) return pending;
  // The variables are of a commit up to this one: the same as the resources, unless other threads
  // of the program commit meanwhile.
  const CallResult now = ask(*core_, AskHomes{});
  if (now.seen == s.resources_of) return pending;
  to_master(*core_, CancelRun{s.run.id, cancelled("the state is taken in another way")},
            [](const MasterActor& master, CancelRun m) { caf::anon_send(master, std::move(m)); });
  (void)s.run.wait(/*spin=*/false);
  TROUPE_TRY(s.written.state, try_state());
  s.whole = true;
  return pending;
}

Expected<JobState> Session::try_state(const StateOptions& options) {
  TROUPE_TRY(may_ask_graph(*core_, "Session::try_state"));
  std::lock_guard not_amid_once(core_->doing_once);
  std::vector<NamedHandle> resources;
  if (options.resources) resources = other_resources(core_->graph);
  TROUPE_TRY(const auto variables, state_reads(core_->graph.def()));
  TROUPE_TRY(JobState state, read_state(core_, variables, resources));
  for (std::size_t i = 0; i < variables.size(); ++i)
    state.variables[i].first = state_name(*variables[i].variable);
  if (state.variables.empty() && state.resources.empty())
    return failed_precondition("the graph reads no variable: there is no state to save");
  std::lock_guard lock(core_->mutex);
  state.graph = core_->marks.of(core_->graph.def());
  state.seed = core_->graph.def().seed;
  return state;
}

DurableRuns& Session::durable_runs() { return core_->durable; }

std::size_t Session::graph_size() const {
  return graph_there(*core_).ok() ? core_->graph.def().nodes.size() : 0;
}

std::shared_ptr<const GraphDef> detail::graph_of(SessionCore& core) {
  std::lock_guard lock(core.mutex);
  return graph_there(core).ok() ? core.graph.snapshot() : std::make_shared<const GraphDef>();
}

Status Session::check_state_within(std::size_t nodes) const {
  TROUPE_TRY(graph_there(*core_));
  const GraphDef& graph = core_->graph.def();
  std::set<std::string> read;
  for (const VariableRead& each : variable_reads(graph)) read.insert(state_name(*each.variable));
  std::set<ResourceName> known;
  for (NodeId id = 0; id < graph.nodes.size(); ++id) {
    const NodeDef& node = graph.nodes[id];
    const OpInfo* op = core_->graph.registry().find(node.op);
    if (!op || op->def.role != Role::handle) continue;
    const std::string& kind = op->def.external.resource;
    if (kind == kMutexKind) continue;  // without contents
    const ResourceName name{kind, resource_container(node), resource_name(node)};
    if (id < nodes) known.insert(name);
    if (known.contains(name) || (kind == "variable" && !read.contains(state_name(node)))) continue;
    return failed_precondition(
               fmt::format("{} was made after the Job, whose next life could not restore it: make "
                           "what has state before the Job",
                           name.text()))
        .at(node.site);
  }
  return ok_status();
}

Expected<std::string> Session::try_save_job(const std::string& dir, const SaveJobOptions& options) {
  TROUPE_TRY(may_wait(*core_, "Session::save_job"));
  return in_some_runtime(core_, [&]() -> Expected<std::string> {
    TROUPE_TRY(CheckpointDraft draft, CheckpointDraft::begin(dir));
    TROUPE_TRY(PendingState pending,
               start_state(std::filesystem::absolute(draft.folder()), draft.token(), false));
    TROUPE_TRY(WrittenState written, pending.try_get());
    if (written.state.committed == 0)
      return failed_precondition("nothing was committed yet: there is no state to save");
    CheckpointData data = checkpoint_of(std::move(written.state));
    TROUPE_TRY(const CheckpointInfo info,
               draft.finish(data, std::move(written.shards), {.keep = options.keep}));
    return info.path;
  });
}

namespace {

// Restores the state in a session without runs.
Status resume(const std::shared_ptr<SessionCore>& core, const JobState& state);

// Checks the graph against the marks, as far as it exists.
Status check_same_graph(SessionCore& core, const std::vector<GraphMark>& marks) {
  std::lock_guard lock(core.mutex);
  return check_marks(core.graph.def(), marks);
}

// Keeps the marks, to check later nodes.
void await_graph(SessionCore& core, const std::vector<GraphMark>& marks) {
  std::lock_guard lock(core.mutex);
  core.awaited = marks;
}

}  // namespace

Status Session::try_restore_job(const std::string& dir, const RestoreJobOptions& options) {
  TROUPE_TRY(may_ask_graph(*core_, "Session::restore_job"));
  TROUPE_TRY(const CheckpointInfo newest, latest_checkpoint(dir));
  TROUPE_TRY(StoredCheckpoint stored, open_checkpoint(newest.path));
  return try_restore(state_of(std::move(stored)), options).in("restoring '" + newest.path + "'");
}

Status Session::try_restore(const std::vector<std::pair<std::string, Tensor>>& values,
                            CommitNumber committed, const std::vector<DatasetPlace>& datasets) {
  return try_restore(JobState{committed, values, datasets, {}});
}

Status Session::try_restore(const JobState& state, const RestoreJobOptions& options) {
  TROUPE_TRY(may_wait(*core_, "Session::restore"));
  if (state.committed == 0) return invalid_argument("a checkpoint is of commit 1 or later");
  TROUPE_TRY(graph_there(*core_));
  const std::uint64_t seed = core_->graph.def().seed;
  if (state.seed.value_or(seed) != seed)
    return invalid_argument(
        fmt::format("the checkpoint is of seed {}, the graph of {}", *state.seed, seed));
  if (options.same_graph) TROUPE_TRY(check_same_graph(*core_, state.graph));
  core_->log.broke("a job was restored since the state was kept");
  TROUPE_TRY(resume(core_, state));
  if (options.same_graph) await_graph(*core_, state.graph);
  return ok_status();
}

namespace {

// A request that assigns these variables, each read by the process that has it. Variables that are
// not placed yet are placed first, as by a step that assigns all of them.
Expected<CompileRequest> restores_of(const std::shared_ptr<SessionCore>& core,
                                     const std::vector<StoredVariable>& stored) {
  std::vector<ShippedGraph::Assigned> assigned;
  for (const StoredVariable& each : stored)
    assigned.push_back({each.tensor.name, each.tensor.dtype, each.tensor.shape});
  Step placing;
  placing.core = core;
  {
    std::lock_guard lock(core->mutex);
    TROUPE_TRY(placing.request, core->shipping.add_assignments(assigned));
  }
  placing.request.replicas = 1;
  TROUPE_TRY(compile_first(placing, compile_request));

  std::unordered_map<std::string, NodeId> known;
  {
    std::lock_guard lock(core->mutex);
    known = core->shipping.variables();
  }
  std::vector<const NodeDef*> variables;
  for (const StoredVariable& each : stored)
    variables.push_back(&core->graph.node(known.at(each.tensor.name)));
  TROUPE_TRY(const std::vector<std::string> hosts, hosts_of(*core, variables));
  std::map<std::pair<std::string, std::string>, ShippedGraph::ShardRestore> restores;
  for (std::size_t i = 0; i < stored.size(); ++i) {
    ShippedGraph::ShardRestore& each = restores[{hosts[i], stored[i].file}];
    each.device = hosts[i];
    each.file = stored[i].file;
    each.tensors.push_back(stored[i].tensor);
  }
  std::vector<ShippedGraph::ShardRestore> all;
  for (auto& [_, each] : restores) all.push_back(std::move(each));
  std::lock_guard lock(core->mutex);
  return core->shipping.add_shard_restores(all);
}

Status resume(const std::shared_ptr<SessionCore>& core, const JobState& state) {
  TROUPE_TRY(check_datasets(core->graph, state.datasets));
  std::vector<Tensor> feeds;
  for (const auto& [name, value] : state.variables) feeds.push_back(value);
  TROUPE_TRY(const std::vector<NodeId> handles, handles_of(core->graph, state.resources));
  for (const SavedResource& each : state.resources) feeds.push_back(each.state);
  CompileRequest restores;
  if (!state.stored.empty()) {
    TROUPE_TRY(restores, restores_of(core, state.stored));
  }
  std::unique_lock lock(core->mutex);
  TROUPE_TRY(CompileRequest request, core->shipping.add_assignments(state.variables));
  TROUPE_TRY(core->shipping.add_loads(handles, request));
  request.targets.insert(request.targets.end(), restores.targets.begin(), restores.targets.end());
  lock.unlock();
  auto place = std::make_shared<const JobPlace>(JobPlace{
      state.committed, state.datasets, state.note, state.once, state.fetches, state.draws});
  return run_single(core, std::move(request), std::move(feeds), RunFor::session,
                    /*only_reads=*/false, std::move(place))
      .status();
}

Status move_place(const std::shared_ptr<SessionCore>& core, const std::string& note) {
  return move_at_gate(*core, [core, note] {
    return ask(*core, MarkPlace{core->id, note, nullptr});
  });
}

// Ends the runtime; unanswered messages are answered with this status.
void end_runtime(SessionCore& core, const Status& status) {
  core.calls->set_unread(status);
  std::unique_ptr<Runtime> old;
  {
    std::lock_guard pointer(core.runtime_mutex);
    std::unique_lock nobody_sends(core.sending);
    old = std::move(core.runtime);
    core.master = nullptr;
    core.tracing = false;
  }
  old.reset();
}

// Replaces a runtime that lost a part with a new, empty one.
Status renew(SessionCore& core, const Status& why) {
  end_runtime(core, why);
  std::lock_guard lock(core.mutex);
  if (core.closed) return session_closed();
  Runtime::Hooks hooks = core.told;
  hooks.join_within = core.cluster.replace_within;
  Cluster cluster = core.cluster;
  cluster.stop = [first = core.cluster.stop, second = core.stop_waiting] {
    return (first && first()) || (second && second());
  };
  TROUPE_TRY(auto fresh, Runtime::start(cluster, core.system, std::move(hooks)));
  {
    std::lock_guard pointer(core.runtime_mutex);
    std::unique_lock nobody_sends(core.sending);
    std::lock_guard numbers(core.numbers_mutex);
    core.runtime = std::move(fresh);
    core.master = core.runtime->master();
    core.id = machine_random();
    core.numbers = RunNumbers(1);
  }
  core.calls->set_unread(session_closed());
  core.shipped = {};
  ++core.generation;
  TROUPE_TRY(ask_master(core, OpenSession{core.id, nullptr}).status);
  return ship(core);
}

// Restores the kept state in a new runtime and repeats the logged runs.
Status go_on(const std::shared_ptr<SessionCore>& core, const Status& why) {
  TROUPE_TRY(renew(*core, why));
  TROUPE_TRY(const std::vector<RunLog::Done> done, core->log.done());
  const CommitNumber from = core->kept ? core->kept->committed : 0;
  TROUPE_LOG(warning, "session",
             fmt::format("{}: going on from commit {}; {} runs are done again", why.message(), from,
                         done.size()));
  if (core->kept) {
    TROUPE_TRY(resume(core, *core->kept));
    TROUPE_TRY(ask(*core, AskPlace{core->id, nullptr}).status);  // before writing
  }
  for (const RunLog::Done& each : done) {
    const RunLog::Outcome outcome = each.again();
    if (outcome == each.outcome) continue;
    if (outcome.code == Code::unavailable) return unavailable("another part was lost meanwhile");
    return internal_error(fmt::format("a run that had {} has {} when it is done again",
                                      each.outcome.text(), outcome.text()));
  }
  return ok_status();
}

// Holds the gate exclusively, and lets this thread pass it.
class Alone {
 public:
  explicit Alone(SessionCore& core) : core_(core), held_(core.callbacks), lock_(core.gate) {
    core_.passes = std::this_thread::get_id();
  }
  ~Alone() { core_.passes = std::thread::id(); }
  Alone(const Alone&) = delete;
  Alone& operator=(const Alone&) = delete;

 private:
  SessionCore& core_;
  const detail::CallbacksHeld held_;  // released after the lock
  std::unique_lock<std::shared_mutex> lock_;
};

// Recovers from the loss of a part of runtime number `lost`.
Status recover(const std::shared_ptr<SessionCore>& core, std::uint64_t lost, const Status& why) {
  const Alone alone(*core);
  if (!core->failed.ok()) return core->failed;
  if (core->generation != lost) return ok_status();  // another thread has recovered
  // Cluster::stop is no loss: nothing would be better if the program came back.
  const auto cannot = [&](const Status& status) {
    const std::string text =
        fmt::format("{}; the session could not go on: {}", why.message(), status.text());
    return status.code() == Code::cancelled ? cancelled(text) : unavailable(text);
  };
  if (Status whole = core->log.whole(); !whole.ok()) return cannot(whole);
  if (Status there = graph_there(*core); !there.ok()) return cannot(there);
  if (core->committed > core->furthest) core->recoveries.progressed();
  core->furthest = std::max(core->furthest, core->committed.load());
  Status status = why;
  while (status.code() == Code::unavailable) {
    const auto pause = core->recoveries.died(std::chrono::steady_clock::now().time_since_epoch());
    if (!pause) {
      status = failed_precondition("it lost parts too often");
      break;
    }
    std::this_thread::sleep_for(*pause);
    status = go_on(core, status);
  }
  if (status.ok()) {
    core->watchers->tell({SessionEvent::Kind::recovered, core->committed, why});
    return status;
  }
  // A partly restored state must not be used.
  core->failed = cannot(status);
  end_runtime(*core, core->failed);
  core->watchers->tell({SessionEvent::Kind::ended, core->committed, core->failed});
  return core->failed;
}

// Whether concurrent runs, repeated one after the other, may get other elements or random numbers.
// Looks at nodes that were added since the last call.
bool order_matters(SessionCore& core) {
  const auto& nodes = core.graph.def().nodes;
  const auto look = [&](const NodeDef& node) {
    const OpInfo* op = core.graph.registry().find(node.op);
    // Their dequeues depend on the commits before.
    if (node.op == "RandomShuffleQueue" || node.op == "PriorityQueue") return true;
    return op && (op->def.random || op->def.external.resource == "dataset");
  };
  for (; core.looked_at < nodes.size(); ++core.looked_at)
    core.order_matters = core.order_matters || look(nodes[core.looked_at]);
  const auto& functions = core.graph.def().functions;
  for (; core.functions_looked_at < functions.size(); ++core.functions_looked_at) {
    const auto& body = functions[core.functions_looked_at].nodes;
    core.order_matters = core.order_matters || std::any_of(body.begin(), body.end(), look);
  }
  return core.order_matters;
}

// Calls `take` while no thread starts a run; `quiet`: none is under way. Repeats it after each loss
// from which the session recovers.
template <class T>
Expected<T> taken_alone(const std::shared_ptr<SessionCore>& shared,
                        const std::function<Expected<T>(bool quiet)>& take) {
  SessionCore& core = *shared;
  for (;;) {
    std::uint64_t generation = 0;
    const auto alone = [&]() -> Expected<T> {
      std::lock_guard not_amid_once(core.doing_once);  // once() starts runs
      const Alone nobody_else(core);
      if (!core.failed.ok()) return core.failed;
      generation = core.generation;
      return take(core.log.quiet());
    };
    auto taken = alone();
    if (taken.ok() || taken.status().code() != Code::unavailable || !core.keeps) return taken;
    TROUPE_TRY(recover(shared, generation, taken.status()));
  }
}

}  // namespace

Expected<JobState> Session::try_keep(const std::optional<std::string>& note) {
  TROUPE_TRY(may_ask_graph(*core_, "Session::keep"));
  if (note) TROUPE_TRY(check_note(*note));
  SessionCore& core = *core_;
  const auto take = [&]() -> Expected<JobState> {
    TROUPE_TRY(const JobPlace place, try_place());
    if (place.committed == 0) return JobState{};
    TROUPE_TRY(move_place(core_, note.value_or(place.note)));
    return try_state();
  };
  if (!core.logs) return take();
  return taken_alone<JobState>(core_, [&](bool quiet) -> Expected<JobState> {
    TROUPE_TRY(JobState state, take());
    core.keeps = true;
    // The state may or may not contain runs under way.
    if (!quiet || (state.committed == 0 && core.any_run)) return state;
    core.kept.reset();
    if (state.committed != 0) core.kept = state;
    core.log.set_order_matters(order_matters(core));
    core.log.kept();
    core.recoveries.progressed();
    return state;
  });
}

Expected<PendingState> Session::start_kept_state(const std::string& note, const std::string& folder,
                                                 const std::string& token, bool refuse_nan,
                                                 bool keeps) {
  TROUPE_TRY(may_ask_graph(*core_, "Session::start_kept_state"));
  TROUPE_TRY(check_note(note));
  SessionCore& core = *core_;
  return taken_alone<PendingState>(core_, [&](bool quiet) -> Expected<PendingState> {
    TROUPE_TRY(move_place(core_, note));
    TROUPE_TRY(PendingState pending, start_state(folder, token, refuse_nan));
    core.keeps = true;
    core.log.set_order_matters(order_matters(core));
    if (quiet && keeps) core.log.taken();
    return pending;
  });
}

void Session::keep_written(JobState state) {
  const Alone nobody_else(*core_);
  if (!core_->log.taken_is_kept()) return;
  core_->kept = std::move(state);
  core_->recoveries.progressed();
}

void Session::keep_restored(JobState state) {
  const Alone nobody_else(*core_);
  core_->keeps = true;
  core_->log.set_order_matters(order_matters(*core_));
  core_->log.kept();
  core_->kept = std::move(state);
}

bool Session::all_here() const { return core_->cluster.wait_for == 0; }

void Session::stop_waiting_if(std::function<bool()> stop) {
  const Alone nobody_else(*core_);
  core_->stop_waiting = std::move(stop);
}

std::uint64_t Session::bytes_in_shards() const {
  if (!graph_there(*core_).ok()) return 0;
  std::uint64_t bytes = 0;
  for (const VariableRead& each : variable_reads(core_->graph.def())) {
    const PartialShape& shape = each.read->out_shapes.at(0);
    const DType dtype = each.read->out_types.at(0);
    if (shape.fully_known() && dtype != DType::string)
      bytes += std::uint64_t(shape.shape().elements()) * dtype_size(dtype);
  }
  return bytes;
}

namespace {

using NamedTensors = std::vector<std::pair<std::string, Tensor>>;

// The reads of these variables. invalid_argument for one of another graph, or one that the graph
// does not read.
Expected<std::vector<VariableRead>> reads_of(const SessionCore& core,
                                             const std::vector<Variable>& variables) {
  const std::vector<VariableRead> all = variable_reads(core.graph.def());
  std::vector<VariableRead> out;
  std::unordered_set<std::string> named;
  for (const Variable& v : variables) {
    if (v.handle().empty()) return invalid_argument("a Variable that stands for none");
    TROUPE_TRY(check_graph(core, v.handle().graph(), "variable"));
    const std::string name = v.name();
    if (!named.insert(name).second) continue;
    const auto found = std::find_if(all.begin(), all.end(), [&](const VariableRead& each) {
      return each.variable->name == name;
    });
    if (found == all.end())
      return invalid_argument(fmt::format("the graph does not read variable '{}'", name));
    out.push_back(*found);
  }
  return out;
}

// The variables with their values in the file, or what does not match. `all`: the file must contain
// all of them.
Expected<NamedTensors> match_variables(const std::vector<VariableRead>& variables,
                                       const std::map<std::string, Tensor>& tensors, bool all) {
  NamedTensors values;
  for (const VariableRead& each : variables) {
    const std::string& name = each.variable->name;
    const DType dtype = *each.variable->attrs.at("T").get<DType>();
    const PartialShape& shape = *each.variable->attrs.at("shape").get<PartialShape>();
    const std::string wanted = std::string(dtype_name(dtype)) + shape.text();
    const auto found = tensors.find(name);
    if (found == tensors.end()) {
      if (!all) continue;
      return not_found(fmt::format("it has no variable '{}', {} in the graph", name, wanted));
    }
    const Tensor& value = found->second;
    if (value.dtype() != dtype || !shape.accepts(value.shape()))
      return invalid_argument(fmt::format("variable '{}' is {}{} there, and {} in the graph", name,
                                          dtype_name(value.dtype()), value.shape().text(), wanted));
    values.emplace_back(name, value);
  }
  if (values.empty()) return not_found("it has none of the graph's variables");
  return values;
}

// A request that assigns such values. Its nodes are made once for the same variables.
Expected<CompileRequest> assignments_of(SessionCore& core, const NamedTensors& values) {
  std::string key;
  for (const auto& [name, value] : values)
    key += fmt::format("{}\n{}{}\n", name, dtype_name(value.dtype()), value.shape().text());
  std::lock_guard lock(core.mutex);
  auto known = core.assignments.find(key);
  if (known == core.assignments.end()) {
    TROUPE_TRY(CompileRequest request, core.shipping.add_assignments(values));
    known = core.assignments.emplace(key, std::move(request)).first;
  }
  return known->second;
}

// The initializers of variables that are not restored.
std::vector<Initializer> others(const GraphBuilder& graph, const NamedTensors& restored) {
  std::unordered_set<std::string> keys;
  for (const NodeDef& node : graph.def().nodes)
    if (node.op == "Variable" && std::any_of(restored.begin(), restored.end(),
                                             [&](const auto& r) { return r.first == node.name; }))
      keys.insert(resource_key(node, graph.registry()));
  std::vector<Initializer> left = initializers_of(graph);
  std::erase_if(left, [&](const Initializer& each) {
    return keys.contains(resource_key(graph.node(each.handle), graph.registry()));
  });
  return left;
}

Status write_variables(const std::string& path, const NamedTensors& variables) {
  Safetensors content;
  for (const auto& [name, value] : variables) {
    if (!safetensors_holds(value.dtype()))
      return invalid_argument(fmt::format("variable '{}' is {}{}, which safetensors does not hold",
                                          name, dtype_name(value.dtype()), value.shape().text()));
    content.tensors.emplace(name, value);
  }
  return write_safetensors(path, content);
}

}  // namespace

Status Session::try_save(const std::string& path) {
  TROUPE_TRY(may_wait(*core_, "Session::save"));
  TROUPE_TRY(const JobState state, try_state());
  return write_variables(path, state.variables);
}

Status Session::try_save(const std::string& path, const std::vector<Variable>& variables) {
  if (variables.empty()) return failed_precondition("no variable is named to be saved");
  TROUPE_TRY(may_ask_graph(*core_, "Session::save"));
  TROUPE_TRY(const auto reads, reads_of(*core_, variables));
  TROUPE_TRY(const JobState state, read_state(core_, reads));
  return write_variables(path, state.variables);
}

Status Session::try_restore(const std::string& path, const RestoreFileOptions& options) {
  TROUPE_TRY(may_ask_graph(*core_, "Session::restore"));
  const auto place = disk().place_of(path);  // links are followed, as by save()
  TROUPE_TRY(const Safetensors content, read_safetensors(place.ok() ? *place : path));
  std::vector<VariableRead> wanted = variable_reads(core_->graph.def());
  if (!options.only.empty()) {
    TROUPE_TRY(wanted, reads_of(*core_, options.only));
  }
  if (wanted.empty()) return failed_precondition("the graph reads no variable to restore");
  const bool all = !options.init_others || !options.only.empty();
  auto values = match_variables(wanted, content.tensors, all);
  if (!values.ok()) return values.status().in("restoring '" + path + "'");
  std::vector<Tensor> feeds;
  for (const auto& [name, value] : *values) feeds.push_back(value);
  TROUPE_TRY(CompileRequest request, assignments_of(*core_, *values));
  const auto run = [&] {
    return run_single(core_, std::move(request), std::move(feeds), RunFor::program).status();
  };
  if (!options.init_others) return run();
  std::lock_guard lock(core_->initialising);
  TROUPE_TRY(const auto missing, without_value(core_, others(core_->graph, *values)));
  add_targets(core_->graph, missing, request);
  return run();
}

Status Session::try_assign(const std::vector<std::pair<std::string, Tensor>>& values) {
  TROUPE_TRY(may_ask_graph(*core_, "Session::assign"));
  if (values.empty()) return ok_status();
  std::vector<Tensor> feeds;
  for (const auto& [name, value] : values) {
    if (!value.defined()) return invalid_argument("an empty Tensor as the value of '" + name + "'");
    feeds.push_back(value);
  }
  TROUPE_TRY(CompileRequest request, assignments_of(*core_, values));
  return run_single(core_, std::move(request), std::move(feeds), RunFor::program).status();
}

Status Session::try_assign_stored(const std::vector<StoredVariable>& values) {
  TROUPE_TRY(may_ask_graph(*core_, "Session::assign"));
  if (values.empty()) return ok_status();
  TROUPE_TRY(CompileRequest request, restores_of(core_, values));
  return run_single(core_, std::move(request), {}, RunFor::program).status();
}

Status Session::try_reset(const std::vector<std::string>& containers) {
  TROUPE_TRY(may_wait(*core_, "Session::reset"));
  ResetContainers message;
  message.containers = containers;
  if (containers.empty()) message.containers.emplace_back();
  const auto reset = [core = core_, message] { return ask_numbered(*core, message); };
  return at_gate(*core_, [&] {
    // What it cuts short would not be, where all is done again in turn.
    const bool alone = core_->log.quiet();
    const CallResult result = reset();
    if (!is_logged(*core_)) return result.status;
    if (!alone || !result.status.ok())
      core_->log.broke("containers were reset since the state was kept");
    else
      core_->log.enter_done(
          [reset] {
            return RunLog::Outcome{reset().status.code(), 0, 0};
          },
          result.seen);
    return result.status;
  });
}

bool Session::replaces_workers() const { return core_->logs; }

std::uint64_t Session::recoveries() const { return core_->generation; }

std::uint64_t Session::watch(std::function<void(const SessionEvent&)> f) {
  if (!f) throw Error(invalid_argument("Session::watch with nothing to call"));
  return core_->watchers->add(std::move(f));
}

void Session::unwatch(std::uint64_t watcher) { core_->watchers->remove(watcher); }

CommitNumber Session::committed() const { return core_->committed.load(); }

Expected<JobPlace> Session::try_place() {
  TROUPE_TRY(may_wait(*core_, "Session::place"));
  CallResult result = at_gate(*core_, [&] { return ask(*core_, AskPlace{core_->id, nullptr}); });
  TROUPE_TRY(result.status);
  return std::move(result.place);
}

Status Session::try_mark_place(const std::string& note) {
  TROUPE_TRY(may_wait(*core_, "Session::mark_place"));
  TROUPE_TRY(check_note(note));
  return move_place(core_, note);
}

Expected<bool> Session::try_once(const std::string& name, const std::function<Status()>& f) {
  TROUPE_TRY(may_wait(*core_, "Session::once"));
  std::lock_guard one_at_a_time(core_->doing_once);
  TROUPE_TRY(const JobPlace place, try_place());
  if (place.once.contains(name)) return false;
  TROUPE_TRY(f());
  TROUPE_TRY(move_at_gate(*core_, [core = core_, name] {
    return ask(*core, DoneOnce{core->id, name, nullptr});
  }));
  return true;
}

bool Session::once(const std::string& name, const std::function<void()>& f) {
  return value_or_throw(try_once(name, [&] {
    f();
    return ok_status();
  }));
}

std::vector<std::string> Session::describe() {
  throw_if_error(may_wait(*core_, "Session::describe"));
  return ask(*core_, DescribeJob{}).text;
}

Expected<std::vector<Wait>> Session::try_waits() {
  TROUPE_TRY(may_wait(*core_, "Session::waits"));
  CallResult result = ask(*core_, AskJobWaits{});
  TROUPE_TRY(result.status);
  return std::move(result.waits);
}

std::vector<DeviceMemory> Session::memory(bool reset_peak) {
  throw_if_error(may_wait(*core_, "Session::memory"));
  std::lock_guard lock(core_->mutex);
  std::lock_guard pointer(core_->runtime_mutex);
  if (core_->closed || !core_->runtime) return {};
  return core_->runtime->memory(reset_peak);
}

Status Session::try_start_trace() {
  TROUPE_TRY(may_wait(*core_, "Session::try_start_trace"));
  std::lock_guard lock(core_->mutex);
  if (core_->closed) return session_closed();
  TROUPE_TRY(core_->calls->fault());
  std::lock_guard pointer(core_->runtime_mutex);
  if (!core_->runtime) return core_->calls->unread();
  if (core_->tracing) return failed_precondition("a trace is being recorded already");
  core_->runtime->start_trace();
  core_->tracing = true;
  return ok_status();
}

Expected<Timeline> Session::try_stop_trace() {
  TROUPE_TRY(may_wait(*core_, "Session::try_stop_trace"));
  std::lock_guard lock(core_->mutex);
  if (core_->closed) return session_closed();
  TROUPE_TRY(core_->calls->fault());
  std::lock_guard pointer(core_->runtime_mutex);
  if (!core_->tracing || !core_->runtime)
    return failed_precondition("no trace is being recorded, or the worker was lost that was");
  core_->tracing = false;
  return core_->runtime->stop_trace();
}

Status Session::try_close() {
  TROUPE_TRY(may_wait(*core_, "Session::close"));
  return end_session(*core_);
}

}  // namespace troupe
