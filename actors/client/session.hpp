// Session: the client's handle on a running graph. This header knows neither CAF nor threads.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "actors/client/compiled_step.hpp"
#include "actors/cluster.hpp"
#include "core/ids.hpp"
#include "core/status.hpp"
#include "core/tensor.hpp"
#include "core/timeline.hpp"
#include "core/wait.hpp"
#include "graph/builder.hpp"
#include "graph/graph_marks.hpp"
#include "ops/api/variable.hpp"
#include "serialization/stored_tensor.hpp"

namespace caf {
class actor_system;
}

namespace troupe {

namespace detail {
struct SessionCore;
}

class DurableRuns;  // actors/client/durable_runs.hpp

// An event of a session (Session::watch).
struct SessionEvent {
  enum class Kind : std::uint8_t {
    committed,  // runs of the session, up to `committed`
    lost,       // a part of the job, which `status` names; its state is gone
    recovered,  // the session replaced what was lost and continues; see Session::keep
    ended,      // it was closed (`status` is ok), or failed, with the cause
  };
  Kind kind = Kind::committed;
  CommitNumber committed = 0;  // the last one known to the client
  Status status = {};
};

struct Feed {
  Output port;
  Tensor value;
};

struct CompileOptions {
  int replicas = 0;  // 0: Cluster::replicas
};

struct InitOptions {
  bool reset = false;  // also initialise variables that have a value
};

struct RestoreFileOptions {
  // The variables to restore; each must be in the file. Empty: all variables that the graph reads.
  std::vector<Variable> only = {};
  // Initialise the variables without a value that are not restored: those not in `only`, or not in
  // the file. A file without any variable of the graph is still refused.
  bool init_others = false;
  // The name in the file of what the graph calls `name`; empty: the same. Of a network "base" that
  // is a part of "tuned" here: [](std::string name) { return name.substr(6); }
  std::function<std::string(const std::string& name)> name_in_file = {};
};

struct RestoreJobOptions {
  // Refuse a checkpoint of another graph: the one saved and this one must be equal, node by node,
  // as far as both go; source lines may differ. Nodes that come later are compared when they are
  // first compiled.
  bool same_graph = false;
};

// A variable of a JobState in the file of a checkpoint.
struct StoredVariable {
  std::string file;  // absolute, and the same on all machines of the job
  StoredTensor tensor;
};

// The state of a job: the contents of a checkpoint.
struct JobState {
  CommitNumber committed = 0;
  // All variables that the graph reads, by name; outside the default container by
  // "CONTAINER/NAME". The name is that of the variable, not of its node.
  std::vector<std::pair<std::string, Tensor>> variables;
  std::vector<DatasetPlace> datasets;  // positions of the datasets
  // The contents of queues and of user-defined resources of which the graph has a handle.
  std::vector<SavedResource> resources = {};
  // The program's notes up to that commit (Session::place, Session::once).
  std::string note = {};
  std::set<std::string> once = {};
  std::vector<Tensor> fetches = {};
  std::uint64_t draws = 0;
  std::vector<GraphMark> graph = {};       // of the graph that the session had
  std::optional<std::uint64_t> seed = {};  // of that graph; nullopt: not compared
  // Variables in files, which only the processes that will have them read.
  std::vector<StoredVariable> stored = {};
};

// The result of Session::start_state().
struct WrittenState {
  JobState state;
  std::vector<CheckpointFile> shards;  // with the variables that `state` does not have
};
class PendingState {
 public:
  // Waits for the files to be written. Any thread.
  Expected<WrittenState> try_get();

 private:
  friend class Session;
  struct State;
  std::shared_ptr<State> state_;
};

struct StateOptions {
  bool resources = true;  // false: variables and datasets only
};

struct SaveJobOptions {
  std::size_t keep = 3;  // of the checkpoints in the directory, with this one; 0: all
};

// Runs a graph on a cluster. Owns the runtime unless it was given an actor system. If the graph is
// destroyed first, compiled steps still run, and methods that need the graph fail with
// failed_precondition. Thread-safe. Functions without `try_` throw troupe::Error.
//
// A fault of the runtime itself (an actor of it threw) fails the session: runs under way and all
// later calls answer `internal` with the cause, other sessions go on, and what the session used
// stays until the process ends. In an actor system of the program's, all sessions there fail; their
// actors end, the program's go on, and later sessions work. The process ends, with exit code 70 and
// the cause on stderr, where that cannot be given up: in a worker process, while a session is being
// closed, and when an actor system ends while actors of failed sessions do not. An exception of a
// kernel that a compute thread runs, and a broken invariant, end the process by SIGABRT.
//
// A process that is forked from the session's has none of its threads: what waits for the session
// answers failed_precondition there, start() throws it, and the destructor does nothing.
//
// An Error that no one catches ends a program that has made a session with exit code 75 if a part
// of the job was lost (unavailable, aborted), else 1, and is printed (core/uncaught.hpp).
//
//   Session s{g};
//   s.init();
//   auto step = s.compile({loss}, {train});
//   auto [l] = step.run<float>();
class Session {
 public:
  // Throws Error if the cluster cannot be started.
  explicit Session(GraphBuilder& graph, Cluster cluster = {});
  // In a program that has a CAF system: the runtime's actors live in it and are gone when the
  // session is closed. When the system ends first, it waits for the program's own actors and then
  // closes the session. It must use the policy `sharing`, or steps are slow; nothing else is asked
  // of it.
  //
  // An event-based actor of that system cannot wait: the threads that run it run the session, too.
  // Called from its handlers, each method that waits answers failed_precondition (describe() and
  // memory() throw it); start(), done(), cancel() and committed() do not wait. Call the others from
  // a thread, from a blocking actor or from one spawned with caf::detached. A session that such a
  // handler destroys is closed by another thread.
  Session(GraphBuilder& graph, caf::actor_system& system, Cluster cluster = {});
  // Of a graph that was built before, such as a saved one (serialization/graph_io.hpp), which the
  // session owns from then on; its nodes are found by name:
  //
  //   Session s{value_or_throw(read_graph("net.graph"))};
  //   s.restore("net.safetensors");
  //   auto step = s.compile({s.graph().output("answer")}, {}, {s.graph().output("question")});
  //
  // Throws Error for a graph that no builder could have made.
  explicit Session(GraphDef graph, Cluster cluster = {});
  ~Session();  // closes
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  // The graph that it runs. Throws Error if that is gone.
  GraphBuilder& graph();

  // Assigns initial values to variables that have no value; with `reset` to all variables,
  // including trained and restored ones, in a run that writes (place()). Variables whose initial
  // values are computed from others that it assigns follow in further runs. Other threads cannot
  // save state meanwhile: a checkpoint has all new values or none.
  void init(const InitOptions& options = {}) { throw_if_error(try_init(options)); }
  Status try_init(const InitOptions& options = {});

  // Compiles a step for these fetches, targets and feeds. Nodes added to the graph since the last
  // call are sent to the master first (Extend). Equal requests share one compiled step.
  CompiledStep compile(const std::vector<Output>& fetches, const std::vector<Op>& targets = {},
                       const std::vector<Output>& feeds = {}, const CompileOptions& options = {}) {
    return value_or_throw(try_compile(fetches, targets, feeds, options));
  }
  Expected<CompiledStep> try_compile(const std::vector<Output>& fetches,
                                     const std::vector<Op>& targets = {},
                                     const std::vector<Output>& feeds = {},
                                     const CompileOptions& options = {});

  // Compiles and runs.
  std::vector<Tensor> run(const std::vector<Output>& fetches, const std::vector<Op>& targets = {},
                          const std::vector<Feed>& feeds = {}, const RunOptions& options = {}) {
    return value_or_throw(try_run(fetches, targets, feeds, options));
  }
  Expected<std::vector<Tensor>> try_run(const std::vector<Output>& fetches,
                                        const std::vector<Op>& targets = {},
                                        const std::vector<Feed>& feeds = {},
                                        const RunOptions& options = {});

  // Where the job stands: its last commit, the note of the last run that had one, and the fetches
  // of that commit if they are at most 4 KiB in all. With a note, what runs have read of datasets
  // since that commit does not count. A program that was killed goes on from there:
  //
  //   session.restore_job(dir);
  //   for (int step = next_step(session.place().note); step < 1000; ++step)
  //     train.run({}, {.note = std::to_string(step + 1)});
  //
  // Until such a program has called place() or once(), its runs that write, init({.reset = true})
  // and reset() fail with failed_precondition, since they might repeat what is done.
  JobPlace place() { return value_or_throw(try_place()); }
  Expected<JobPlace> try_place();
  // Advances the place without a commit: replaces the note of the last commit, whose place then
  // includes what runs have read and drawn since. For work between two commits that must not be
  // repeated, such as an evaluation.
  void mark_place(const std::string& note) { throw_if_error(try_mark_place(note)); }
  Status try_mark_place(const std::string& note);
  // Keeps the current state in this process's memory. From then on a lost worker ends no run: the
  // session begins with new workers, restores the kept state, repeats the runs since then, and then
  // the run that failed. It starts workers of `local:W` itself; for those of other machines it
  // waits at the same address (Cluster::spares, Cluster::replace_within): what is left of the
  // workers joins it again. Commits, fetches and draws are those of a job without the loss,
  // bit for bit; effects outside of the job (Print, Save) are repeated. Marks the place (with
  // `note`; default: the note of the last commit stays). Returns the state, with commit 0 if
  // nothing was committed yet. While runs are in progress nothing is kept, and an earlier kept
  // state stays.
  //
  // The session recovers only if the result is certain to be the same. Since keep() there must have
  // been at most 256 MiB of feeds and notes and 200,000 runs, not counting those that only read; no
  // restore_job(), passed deadline or cancelled run, nor a reset() while runs were in progress; in
  // a graph that draws or reads datasets, no concurrent runs, and in any other none that dequeue;
  // and the graph must exist and not be under construction by another thread. Repeated runs must
  // have the same commits, errors, and fetches of up to 4 KiB. Runs of steps that only read (they
  // cannot write, draw, dequeue or read a dataset) count for none of this, however they end. The
  // session gives up after 10 losses within 60 s without progress of the job. If it does not
  // recover, the run fails with unavailable. A PendingRun that a loss ends fails, and is not
  // repeated. In one process nothing is kept.
  JobState keep(const std::optional<std::string>& note = {}) {
    return value_or_throw(try_keep(note));
  }
  Expected<JobState> try_keep(const std::optional<std::string>& note = {});
  // Whether keep() keeps anything: the session has workers.
  bool replaces_workers() const;
  // Whether the session would go on now from its kept state: failed_precondition with the reason if
  // not, until keep() is called again.
  Status can_recover() const;
  // The number of losses from which the session has recovered.
  std::uint64_t recoveries() const;
  // Calls `f` with each event of the session from now on; immediately with its end if it has ended.
  // The rules for the function of PendingRun::then apply to `f`. Returns a number for unwatch(),
  // after which `f` is not called any more: it waits for a call under way, but not within a
  // callback, which may be that call.
  std::uint64_t watch(std::function<void(const SessionEvent&)> f);
  void unwatch(std::uint64_t watcher);
  // Calls `f` unless it was called under this name before, by this process of the job or an earlier
  // one: then false. The name is kept with the last commit, and what runs have read and drawn since
  // then belongs to its place (mark_place). If `f` fails, nothing is noted, and a later once() of
  // the name, in this process or a restarted one, calls it again; so does a program that is killed
  // before it is noted. So `f` should be one run, or repeatable; durable runs in it are refused.
  // Other threads cannot save state meanwhile.
  bool once(const std::string& name, const std::function<void()>& f);
  Expected<bool> try_once(const std::string& name, const std::function<Status()>& f);

  // A consistent snapshot of all variables that the graph reads, by name: "CONTAINER/NAME" where
  // they are in a container, as files name them.
  std::vector<std::pair<std::string, Tensor>> variables() {
    return value_or_throw(try_variables());
  }
  Expected<std::vector<std::pair<std::string, Tensor>>> try_variables();
  // The same, with the contents of queues, the commit number and the positions of datasets. Runs
  // that commit later are not part of it; an element that such a run has dequeued is still in its
  // queue. failed_precondition if the graph reads no variable and has no such resource;
  // unimplemented, with the handle, for a kind of resource that cannot be saved; already_exists if
  // two variables would have the same name.
  Expected<JobState> try_state(const StateOptions& options = {});
  // Writes this state as the checkpoint DIR/ckpt-N, where N is the commit number, and returns its
  // path. The write is atomic (serialization/checkpoint.hpp). The checkpoint can be restored with
  // other devices and another number of workers. Errors: those of try_state(), failed_precondition
  // before the first commit or where `dir` has an intact checkpoint of a later commit, which
  // restore_job() would take instead; resource_exhausted if the disk is full.
  std::string save_job(const std::string& dir, const SaveJobOptions& options = {}) {
    return value_or_throw(try_save_job(dir, options));
  }
  Expected<std::string> try_save_job(const std::string& dir, const SaveJobOptions& options = {});
  // Restores the newest intact checkpoint of the directory. Only before the first run. The graph
  // must have everything in the checkpoint, by name and type, and the same seed; not_found or
  // invalid_argument names what differs. Anything that is not in the checkpoint stays in its
  // initial state. not_found if there is no intact checkpoint; failed_precondition after a run, for
  // a format that this version cannot read, and for another graph, if `options` asks. After an
  // error nothing is restored, and the session is as before: try another one, or init().
  void restore_job(const std::string& dir, const RestoreJobOptions& options = {}) {
    throw_if_error(try_restore_job(dir, options));
  }
  Status try_restore_job(const std::string& dir, const RestoreJobOptions& options = {});
  // Writes a consistent snapshot of all variables that the graph reads, or of the given ones (a
  // network's parameters()), to a safetensors file (https://github.com/huggingface/safetensors).
  // The file is replaced atomically; a symbolic link is followed. failed_precondition if there are
  // no variables, or the path is a device, a pipe or a directory; invalid_argument for a dtype that
  // the format lacks (string, c128). Positions of datasets and the commit number are not part of
  // the file; see try_state().
  void save(const std::string& path) { throw_if_error(try_save(path)); }
  Status try_save(const std::string& path);
  void save(const std::string& path, const std::vector<Variable>& variables) {
    throw_if_error(try_save(path, variables));
  }
  Status try_save(const std::string& path, const std::vector<Variable>& variables);
  // Assigns the values of such a file in one run, at any time. The file must have every variable
  // that the graph reads, with its dtype and shape; other contents are ignored. Otherwise not_found
  // or invalid_argument names the variable, and no variable changes. failed_precondition if the
  // graph reads no variable; data_loss if the file is not in the format.
  void restore(const std::string& path, const RestoreFileOptions& options = {}) {
    throw_if_error(try_restore(path, options));
  }
  Status try_restore(const std::string& path, const RestoreFileOptions& options = {});

  // Assigns these values to variables in one run, at any time. Named as in JobState. not_found for
  // a name that is no variable of the graph, or comes twice; invalid_argument for another dtype or
  // shape; then no variable changes.
  void assign(const std::vector<std::pair<std::string, Tensor>>& values) {
    throw_if_error(try_assign(values));
  }
  Status try_assign(const std::vector<std::pair<std::string, Tensor>>& values);

  // Restores a state: variables by name, the commit number, the contents of resources and the
  // positions of datasets; a dataset without an entry starts at its beginning. Only before the
  // first run. invalid_argument if committed < 1, a resource cannot have this state, or the graph
  // has another seed; not_found for a name that the graph does not have.
  void restore(const JobState& state, const RestoreJobOptions& options = {}) {
    throw_if_error(try_restore(state, options));
  }
  Status try_restore(const JobState& state, const RestoreJobOptions& options = {});
  // The same for variables and datasets only.
  void restore(const std::vector<std::pair<std::string, Tensor>>& values, CommitNumber committed,
               const std::vector<DatasetPlace>& datasets = {}) {
    throw_if_error(try_restore(values, committed, datasets));
  }
  Status try_restore(const std::vector<std::pair<std::string, Tensor>>& values,
                     CommitNumber committed, const std::vector<DatasetPlace>& datasets = {});

  // Drops the variables and queues of these containers on all devices; "" is the default container,
  // and the default argument. failed_precondition while a restored program must ask for its place()
  // first. A run in progress that uses a container ends with `aborted`, unless its commit is
  // already being decided. Later runs find variables uninitialised, queues empty and open, and
  // datasets at their beginning. Steps that use a container are recompiled by their next run();
  // until then start() fails with not_found.
  Status try_reset(const std::vector<std::string>& containers = {});
  void reset(const std::vector<std::string>& containers = {}) {
    throw_if_error(try_reset(containers));
  }

  // The commit number of this session's last committed run.
  CommitNumber committed() const;
  // The master's processes, runs and compiled steps, one line each; and for each device, the number
  // of its variables and their bytes, as far as shapes are declared.
  std::vector<std::string> describe();
  // What each run in progress waits for, in all processes: node, line, queue, worker, and for how
  // long. Asks all processes; one that does not answer within 250 ms is an entry of its own. Empty
  // if no run is in progress and no step is being compiled.
  std::vector<Wait> waits() { return value_or_throw(try_waits()); }
  Expected<std::vector<Wait>> try_waits();

  // Memory allocated on the devices of this process: current, and peak since the last reset. Empty
  // if worker processes compute.
  std::vector<DeviceMemory> memory(bool reset_peak = false);

  // Starts recording a trace of all processes of the job: nodes, bursts, messages, tensors sent
  // between devices, waits. failed_precondition if a trace is being recorded.
  Status try_start_trace();
  // Stops recording and returns the trace, with the offsets between the processes' clocks. Each
  // thread keeps its last 65,536 spans. Waits up to 10 s for the workers: a lost worker has no
  // part, a late one a part that is not `complete`. failed_precondition if no trace is being
  // recorded.
  Expected<Timeline> try_stop_trace();

  // Cancels all runs, waits for them, and ends the runtime. A session that replaces a lost worker
  // gives that up. Idempotent. Other methods called later fail with failed_precondition.
  Status try_close();
  void close() { throw_if_error(try_close()); }

 private:
  friend class Job;  // actors/job/job.hpp
  DurableRuns& durable_runs();
  // Begins to save the current state for a checkpoint. Each process writes its variables into
  // `folder`, the absolute path of a CheckpointDraft's folder, while runs continue. The contents of
  // queues and user-defined resources are read before that; if a run commits in between, the whole
  // state passes through this process, or PendingState::try_get() is aborted. `refuse_nan`: a NaN
  // in the state is out_of_range. Errors: those of try_state(), of the run, and failed_precondition
  // if the folder is not shared.
  Expected<PendingState> start_state(const std::string& folder, const std::string& token,
                                     bool refuse_nan);
  // The same, repeated after a loss, as keep() is. Marks the place. `keeps`: the session will
  // restore this state after a loss, once keep_written() reports that its files are permanent. Of
  // such states one is under way at a time.
  Expected<PendingState> start_kept_state(const std::string& note, const std::string& folder,
                                          const std::string& token, bool refuse_nan, bool keeps);
  // Whether the session goes back to that one from now on.
  bool keep_written(JobState state);
  // Keeps a state that was just restored.
  void keep_restored(JobState state);
  // The files that it would read if a worker were lost now: of the kept state, and of
  // try_assign_stored() since.
  std::set<std::string> files_to_recover() const;
  // The files in that folder are about to be removed: unless it needs none of them, the session
  // goes back to no state until one is kept again, for that reason.
  void forget_files_in(const std::string& folder, const std::string& why);
  // Whether all processes of the session are on this machine, and share its memory.
  bool all_here() const;
  // Why no run of the session succeeds any more: it has ended by itself, or lost a part without
  // which it cannot go on. ok while it goes on, and when it was closed.
  Status failure() const;
  // Polled while the session waits for workers after a loss; true: it gives up.
  void stop_waiting_if(std::function<bool()> stop);
  // The size of the state that start_state() lets other processes write: the bytes of variables
  // with shapes declared in the graph.
  std::uint64_t bytes_in_shards() const;
  // Assigns variables in one run; the process that has a variable reads it. Errors: those of
  // assign(), and data_loss.
  Status try_assign_stored(const std::vector<StoredVariable>& values);
  // The number of nodes of the graph; 0 if it is destroyed.
  std::size_t graph_size() const;
  // Checks that a Job that was made when the graph had `nodes` nodes can be resumed.
  // failed_precondition, with the line, for a dataset, a resource or a variable that is read but
  // has no handle among those nodes: a checkpoint would have it, but the restoring graph would not.
  Status check_state_within(std::size_t nodes) const;

  std::shared_ptr<detail::SessionCore> core_;
};

}  // namespace troupe
