// SessionCore: what a session, its compiled steps and its pending runs share, and how they ask the
// master.
#pragma once

#include <sys/types.h>
#include <unistd.h>

#include <atomic>
#include <caf/send.hpp>
#include <chrono>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <shared_mutex>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "actors/client/detail/callbacks.hpp"
#include "actors/client/detail/open_calls.hpp"
#include "actors/client/durable_runs.hpp"
#include "actors/client/run_log.hpp"
#include "actors/client/session.hpp"
#include "actors/client/shipped_graph.hpp"
#include "actors/inline_send.hpp"
#include "actors/master/run_numbers.hpp"
#include "actors/runtime/residents.hpp"
#include "actors/runtime/runtime.hpp"
#include "actors/supervision/restart_budget.hpp"
#include "ops/graph_api.hpp"

namespace troupe::detail {

// What the master has of a graph: the number of nodes, their running hash, and the nodes that may
// change later (Merges), with a hash of their inputs.
struct Shipped {
  std::size_t nodes = 0, functions = 0;
  std::uint64_t hash = 0;
  std::vector<NodeId> merges;
  std::uint64_t merges_hash = 0;
};

// How many forks this process comes from since the library was loaded: what changes in a forked
// process, and costs no system call to look at.
std::uint64_t forks_before_this_process();

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
  std::uint64_t asked_about = 0;  // its number at the ControlSocket; 0: nobody asks
  MasterActor master;
  std::uint64_t id = 0;
  std::atomic<CommitNumber> committed{0};
  std::atomic<bool> closed{false};
  std::atomic<bool> closing{false};  // or somebody waits to close it: it goes on from no loss
  std::shared_mutex sending;         // shared: sends to the master; exclusive: ends the runtime
  std::mutex mutex;  // guards what follows, for compiling and closing, never for a run
  ShippedGraph shipping;
  Shipped shipped;
  std::map<std::string, CompileRequest> assignments;  // by the variables' names, dtypes and shapes
  GraphMarks marks;                                   // of the client's graph
  std::vector<GraphMark> awaited;  // of the restored graph: for nodes that are still to come
  // Held in once(), and from checking variables to assigning them. Who saves the state takes both
  // at once: so neither waits for the other, and init() may be called while another thread is in
  // once() and waits for what comes after it.
  std::recursive_mutex doing_once, initialising;
  std::atomic<std::thread::id> once_by;  // the thread in once(); none: nobody is
  std::atomic<bool> any_run{false};      // if false, no variable has a value
  bool tracing = false;
  std::mutex numbers_mutex;
  RunNumbers numbers{1};  // guarded by numbers_mutex

  Runtime::Hooks told = {};
  caf::actor_system* const system;  // of the program; null: the runtime has its own
  const pid_t process = getpid();   // which has its threads
  const std::uint64_t forks = forks_before_this_process();
  const bool logs;                 // it can replace its workers
  std::atomic<bool> keeps{false};  // Session::keep was called
  std::shared_mutex gate;  // shared: starts a run or moves the place; exclusive: keeps the state
                           // or goes back to it (that thread is in `passes`)
  std::atomic<std::thread::id> passes{};
  std::atomic<std::uint64_t> generation{0};  // number of runtimes that were lost
  RunLog log;
  std::mutex runtime_mutex;  // guards the pointer, for threads that do not send
  // Guarded by `gate`.
  std::optional<JobState> kept;                        // none: the beginning of the session
  std::mutex order_mutex;                              // guards the three below: also compiles look
  std::size_t looked_at = 0, functions_looked_at = 0;  // by note_order()
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

// While it exists, this thread asks Cluster::stop of the session, which is locked meanwhile.
class AsksWhetherToStop {
 public:
  explicit AsksWhetherToStop(const SessionCore& core) : before_(std::exchange(asked, &core)) {}
  ~AsksWhetherToStop() { asked = before_; }
  AsksWhetherToStop(const AsksWhetherToStop&) = delete;
  AsksWhetherToStop& operator=(const AsksWhetherToStop&) = delete;
  // failed_precondition if `method` was called there.
  static Status not_here(const SessionCore& core, std::string_view method);

 private:
  inline static thread_local const SessionCore* asked = nullptr;
  const SessionCore* const before_;
};

// failed_precondition in a process that was forked from the session's, where its threads are not.
Status in_its_process(const SessionCore& core, std::string_view method);
// Whether `method`, which waits for the runtime's actors, may be called on this thread.
Status may_wait(const SessionCore& core, std::string_view method);
// The client owns the graph, and may destroy it before the session.
Status graph_there(const SessionCore& core);
// failed_precondition while a body is built, whose nodes may be taken back: nothing of the session
// may look at the graph then, or add to it.
Status graph_is_whole(const SessionCore& core);
// The same for `method`, which also needs the client's graph.
Status may_ask_graph(const SessionCore& core, std::string_view method);
Status session_closed();

void refuse(Call& call, Status status);

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
void to_master(SessionCore& core, Message&& message, Send send) {
  std::shared_lock lock(core.sending);
  if (!core.closed && core.master) send(core.master, message);
}
template <class Message>
void to_master(SessionCore& core, Message message) {
  to_master(core, std::move(message),
            [](const MasterActor& master, Message& m) { caf::anon_send(master, std::move(m)); });
}

template <class Message>
CallResult ask(SessionCore& core, Message message) {
  auto call = attach_call(core, message);
  if (!call->done()) to_master(core, std::move(message));
  return call->wait(false);
}

// The answer has arrived: the master learns with the next run that it need not keep it.
void note_answer(SessionCore& core, const RunId& run);

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

Status check_graph(const SessionCore& core, const GraphBuilder& graph, std::string_view what);
Expected<CompileRequest> make_request(const SessionCore& core, const std::vector<Output>& fetches,
                                      const std::vector<Op>& targets,
                                      const std::vector<Output>& feeds);

// Ships new nodes, or the whole graph if a Merge has changed. REQUIRES: core.mutex is held.
Status ship(SessionCore& core);
struct Compiled {
  CompiledId id = 0;
  bool only_reads = false;  // its runs without a note have no effect, however they end
};
// Ships the client's graph, and compiles the request.
Expected<Compiled> compile_request(SessionCore& core, const CompileRequest& request);
// Compiles a step again. Called on any thread; does not read the client's graph, which may be
// growing.
Expected<Compiled> compile_again(SessionCore& core, const CompileRequest& request);
// Warns of a line that adds nodes in a loop, which makes each run slower.
void tell_of_growth(SessionCore& core);

// Checks a note of the program, which may have up to kMostNote bytes.
Status check_note(const std::string& note);

}  // namespace troupe::detail
