// Session: the client's handle on a running graph. This header knows neither CAF nor threads.
#pragma once

#include <chrono>
#include <cstdint>
#include <initializer_list>
#include <iterator>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "actors/cluster.hpp"
#include "core/ids.hpp"
#include "core/status.hpp"
#include "core/tensor.hpp"
#include "core/timeline.hpp"
#include "core/transaction.hpp"
#include "graph/builder.hpp"
#include "ops/api/variable.hpp"

namespace caf {
class actor_system;
}

namespace troupe {

namespace detail {
struct SessionCore;
}

struct RunOptions {
  // From the call on; none unless given. Past it: deadline_exceeded, at once for 0 and less, as a
  // deadline that has passed leaves.
  std::optional<std::chrono::nanoseconds> timeout = {};
};

// A run under way. Dropping it does not cancel it. One that start() did not make is empty: what is
// asked of it is failed_precondition.
class PendingRun {
 public:
  bool done() const;
  // Waits. A failed run's Status names node, op, device and the line that created the node.
  Expected<std::vector<Tensor>> try_get();
  std::vector<Tensor> get() { return value_or_throw(try_get()); }
  // The number under which the run committed; 0: it wrote nothing. Throws Error
  // (failed_precondition) unless done().
  CommitNumber committed() const;
  void cancel();

 private:
  friend class CompiledStep;
  struct State;
  std::shared_ptr<State> state_;
};

template <class... T>
class DatasetPass;

// A request compiled once: pruned, placed, partitioned, loaded where it runs. Copies share it; it
// may be run from several threads at once. Valid as long as its session is open. One that compile()
// did not make is empty: running it is failed_precondition.
class CompiledStep {
 public:
  CompiledStep() = default;

  // `feeds` in the order given to compile; dtypes and shapes must be what the graph says of these
  // ports. Returns the fetches in order. Where a compute thread of the process sleeps, this one
  // computes in its place: kernels then run on its stack, and a run that others end (close(),
  // reset()) is over for it with the kernel that it is in. Its floating-point environment changes
  // nothing. With a timeout, and in start(), only cheap nodes are computed here, of a few hundred
  // nanoseconds each, 256 at most at a time.
  Expected<std::vector<Tensor>> try_run(std::vector<Tensor> feeds = {},
                                        const RunOptions& options = {}) const;
  std::vector<Tensor> run(std::vector<Tensor> feeds = {}, const RunOptions& options = {}) const {
    return value_or_throw(try_run(std::move(feeds), options));
  }
  // For steps that fetch scalars: auto [loss, accuracy] = step.run<float, float>(feeds);
  // invalid_argument, thrown, when they are others, or not as many.
  template <class... T>
  requires(sizeof...(T) > 0) std::tuple<T...> run(std::vector<Tensor> feeds = {},
                                                  const RunOptions& options = {})
  const {
    const std::vector<Tensor> fetched = value_or_throw(try_run(std::move(feeds), options));
    throw_if_error(check_scalars(fetched, {dtype_of<T>...}));
    return scalars<T...>(fetched, std::index_sequence_for<T...>{});
  }
  PendingRun start(std::vector<Tensor> feeds = {}, const RunOptions& options = {}) const;

  // The datasets that the step reads begin anew, for whatever step reads them. invalid_argument
  // when it reads none; failed_precondition while a run that reads one is under way.
  void rewind() const { throw_if_error(try_rewind()); }
  Status try_rewind() const;
  // Runs, or says that there is nothing left: nullopt once one of the step's datasets has ended.
  std::optional<std::vector<Tensor>> next(const RunOptions& options = {}) const {
    return value_or_throw(try_next(options));
  }
  Expected<std::optional<std::vector<Tensor>>> try_next(const RunOptions& options = {}) const;
  // The same request for one replica; itself when it was compiled for one.
  CompiledStep single() const { return value_or_throw(try_single()); }
  Expected<CompiledStep> try_single() const;

  // All of the step's datasets once, from the first element to the last, as one replica:
  //
  //   for (auto [right, count] : evaluate.pass<float, std::int64_t>()) ...
  //
  // Begins anew each time, wherever an earlier pass was left. Without types an element is the
  // fetched tensors. A dataset that repeats for ever has no end.
  template <class... T>
  DatasetPass<T...> pass() const;

 private:
  template <class... T>
  friend class DatasetPass;
  friend class Session;
  static Status check_scalars(const std::vector<Tensor>& fetched,
                              std::initializer_list<DType> wanted);
  template <class... T, std::size_t... I>
  static std::tuple<T...> scalars(const std::vector<Tensor>& fetched, std::index_sequence<I...>) {
    return {fetched.at(I).template item<T>()...};
  }
  struct State;
  std::shared_ptr<State> state_;
};

// What a step gives from the first elements of its datasets to the last ones (CompiledStep::pass).
// To be gone through once. Throws Error as run() does.
template <class... T>
class DatasetPass {
 public:
  class Iterator {
   public:
    explicit Iterator(const CompiledStep& step) : step_(&step), fetched_(step.next()) {}
    // Throws Error (out_of_range) behind the last element.
    decltype(auto) operator*() const {
      if (!fetched_) throw Error(out_of_range("the pass is over"));
      if constexpr (sizeof...(T) == 0) {
        return (*fetched_);
      } else {
        throw_if_error(CompiledStep::check_scalars(*fetched_, {dtype_of<T>...}));
        return CompiledStep::scalars<T...>(*fetched_, std::index_sequence_for<T...>{});
      }
    }
    void operator++() { fetched_ = step_->next(); }
    bool operator==(std::default_sentinel_t) const { return !fetched_; }

   private:
    const CompiledStep* step_;
    std::optional<std::vector<Tensor>> fetched_;
  };

  explicit DatasetPass(CompiledStep step) : step_(std::move(step)) {}
  Iterator begin() const {
    step_.rewind();
    return Iterator(step_);
  }
  std::default_sentinel_t end() const { return {}; }

 private:
  CompiledStep step_;
};

template <class... T>
DatasetPass<T...> CompiledStep::pass() const {
  return DatasetPass<T...>(single());
}

struct Feed {
  Output port;
  Tensor value;
};

struct CompileOptions {
  int replicas = 0;  // 0: as many as the cluster's
};

struct InitOptions {
  bool reset = false;  // initialise all variables anew, whatever values they have
};

struct RestoreFileOptions {
  // The variables to restore, each of which has to be in the file. Empty: all that the graph reads.
  std::vector<Variable> only = {};
  // Give other variables without a value their initial one: those that `only` does not name, or
  // that the file lacks. A file that has no variable of the graph is refused all the same.
  bool init_others = false;
};

// All that a job has to remember: what a checkpoint holds.
struct JobState {
  CommitNumber committed = 0;
  // All that the graph reads, by name, in a container other than the default one by
  // "CONTAINER/NAME". The name is that of the variable, whatever its node is called.
  std::vector<std::pair<std::string, Tensor>> variables;
  std::vector<DatasetPlace> datasets;  // how far they are read
  // Queues, and resources of kinds of the program's own, that the graph has a handle of.
  std::vector<SavedResource> resources = {};
};

struct StateOptions {
  bool resources = true;  // else of variables and datasets alone
};

struct SaveJobOptions {
  std::size_t keep = 3;  // of the checkpoints in the directory, with this one; 0: all
};

// Runs a graph on a cluster. Owns the runtime unless it was given an actor system. Once its graph
// is gone, steps that are compiled still run, and what needs the graph is failed_precondition. May
// be used from several threads. Functions without `try_` throw troupe::Error.
//
// A fault of the runtime itself (an actor of it threw) fails the session: runs under way and all
// later calls answer `internal` with the cause, other sessions go on, and what the session used
// stays until the process ends. In an actor system of the program's, all sessions there fail; their
// actors end, the program's go on, and later sessions work. The process ends, with exit code 70 and
// the cause on stderr, where that cannot be given up: in a worker process, while a session is being
// closed, and when an actor system ends while actors of failed sessions do not. An exception of a
// kernel that a compute thread runs, and a broken invariant, end the process by SIGABRT.
//
//   Session s{g};
//   s.init();
//   auto step = s.compile({loss}, {train});
//   auto [l] = step.run<float>();
class Session {
 public:
  // Throws Error when the cluster cannot be started.
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
  ~Session();  // closes
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  // Gives variables that have no value yet the initial one that the graph records; with `reset`
  // all of them, also those that were trained or restored.
  void init(const InitOptions& options = {}) { throw_if_error(try_init(options)); }
  Status try_init(const InitOptions& options = {});

  // Compiles for these fetches, targets and feeds; nodes added to the graph since are shipped
  // (Extend). Equal requests share one compiled step. Without feeds, fetches' order is the
  // result's.
  CompiledStep compile(const std::vector<Output>& fetches, const std::vector<Op>& targets = {},
                       const std::vector<Output>& feeds = {}, const CompileOptions& options = {}) {
    return value_or_throw(try_compile(fetches, targets, feeds, options));
  }
  Expected<CompiledStep> try_compile(const std::vector<Output>& fetches,
                                     const std::vector<Op>& targets = {},
                                     const std::vector<Output>& feeds = {},
                                     const CompileOptions& options = {});

  // Compile and run at once.
  std::vector<Tensor> run(const std::vector<Output>& fetches, const std::vector<Op>& targets = {},
                          const std::vector<Feed>& feeds = {}, const RunOptions& options = {}) {
    return value_or_throw(try_run(fetches, targets, feeds, options));
  }
  Expected<std::vector<Tensor>> try_run(const std::vector<Output>& fetches,
                                        const std::vector<Op>& targets = {},
                                        const std::vector<Feed>& feeds = {},
                                        const RunOptions& options = {});

  // The values of all variables that the graph reads, by name, as of one moment.
  std::vector<std::pair<std::string, Tensor>> variables() {
    return value_or_throw(try_variables());
  }
  Expected<std::vector<std::pair<std::string, Tensor>>> try_variables();
  // The same with what queues hold and where the job stood at that moment: runs that committed
  // later, or had not ended, are no part of it; an element that such a run has taken is there.
  // failed_precondition when the graph reads no variable and has no such resource; unimplemented,
  // naming its handle, for one of a kind that does not say how it is saved; already_exists for two
  // variables that would have one name.
  Expected<JobState> try_state(const StateOptions& options = {});
  // Writes all of that as the checkpoint DIR/ckpt-N, N the number of commits, and returns its path.
  // It is there as a whole or not at all (serialization/checkpoint.hpp), and needs no devices or
  // workers of the same number to be restored. Errors: those of try_state(), failed_precondition
  // before the first commit, resource_exhausted on a full disk.
  std::string save_job(const std::string& dir, const SaveJobOptions& options = {}) {
    return value_or_throw(try_save_job(dir, options));
  }
  Expected<std::string> try_save_job(const std::string& dir, const SaveJobOptions& options = {});
  // Goes on from the newest checkpoint in the directory that is whole. Before the first run. The
  // graph has to have what the checkpoint holds, by name and type: not_found or invalid_argument
  // names what does not fit, and seeds that differ. What the checkpoint does not hold is as it was:
  // variables without a value, queues empty, datasets at their beginning. not_found without a whole
  // checkpoint; failed_precondition after a run, and for a format that this version does not read.
  void restore_job(const std::string& dir) { throw_if_error(try_restore_job(dir)); }
  Status try_restore_job(const std::string& dir);
  // Writes the values of all variables that the graph reads, or of some of them (a network's
  // parameters()), as of one moment, to a safetensors file
  // (https://github.com/huggingface/safetensors), which is there as a whole or not at all. An older
  // file is replaced; of a link, the file that it leads to. failed_precondition when the graph
  // reads no variable, none is named, or the path is a device, a pipe or a directory;
  // invalid_argument for a variable of a dtype that the format lacks (strings and c128). Datasets
  // and the number of commits are no part of it: they are of try_state().
  void save(const std::string& path) { throw_if_error(try_save(path)); }
  Status try_save(const std::string& path);
  void save(const std::string& path, const std::vector<Variable>& variables) {
    throw_if_error(try_save(path, variables));
  }
  Status try_save(const std::string& path, const std::vector<Variable>& variables);
  // Assigns the values in such a file, in one run, at any time. The file has to have each variable
  // that the graph reads, with its dtype and shape; what else it has stays there. not_found or
  // invalid_argument names the one that does not fit, and nothing is changed. failed_precondition
  // when the graph reads no variable. data_loss for a file that is none.
  void restore(const std::string& path, const RestoreFileOptions& options = {}) {
    throw_if_error(try_restore(path, options));
  }
  Status try_restore(const std::string& path, const RestoreFileOptions& options = {});

  // Puts a state back: values under their names, as commit `committed`, resources with what they
  // held, datasets where they were; one that is not named is at its beginning. Before the first
  // run. invalid_argument unless `committed` is 1 or more, and for a state that a resource cannot
  // have; not_found for a name that the graph does not have.
  void restore(const JobState& state) { throw_if_error(try_restore(state)); }
  Status try_restore(const JobState& state);
  // The same of variables and datasets alone.
  void restore(const std::vector<std::pair<std::string, Tensor>>& values, CommitNumber committed,
               const std::vector<DatasetPlace>& datasets = {}) {
    throw_if_error(try_restore(values, committed, datasets));
  }
  Status try_restore(const std::vector<std::pair<std::string, Tensor>>& values,
                     CommitNumber committed, const std::vector<DatasetPlace>& datasets = {});

  // Drops the variables and queues of these containers on all devices, whoever made them; "" is the
  // default container, the only one when none is named. It happens between two runs: one under way
  // that uses a container ends with `aborted`, or first, when its commit is being decided. Later
  // ones find variables uninitialised, queues empty and open, and datasets at their beginning.
  // Steps that use a container are compiled anew when they run next; start() is answered not_found
  // until then.
  Status try_reset(const std::vector<std::string>& containers = {});
  void reset(const std::vector<std::string>& containers = {}) {
    throw_if_error(try_reset(containers));
  }

  // The last number under which a run of this session committed.
  CommitNumber committed() const;
  // What the master knows of processes, runs and compiled steps, a line each; and for each device
  // how many variables it has, and their bytes, as far as their shapes are declared.
  std::vector<std::string> describe();

  // What the devices of this process have handed out: now, and at most since the last reset. Empty
  // when worker processes compute.
  std::vector<DeviceMemory> memory(bool reset_peak = false);

  // Records what all processes of the job do from now on: nodes, bursts, messages, tensors that
  // cross, waits. failed_precondition while that is on already.
  Status try_start_trace();
  // Ends it; what they recorded, with how far their clocks are apart. Each thread keeps its last
  // 65,536 spans. Waits for the workers' parts, 10 s at most: of one that was lost before there is
  // none, of one that is late a part that is not `complete`. failed_precondition when nothing is
  // being recorded.
  Expected<Timeline> try_stop_trace();

  // Cancels what runs, waits for it, ends the runtime. Idempotent; later calls fail with
  // failed_precondition.
  Status try_close();
  void close() { throw_if_error(try_close()); }

 private:
  std::shared_ptr<detail::SessionCore> core_;
};

}  // namespace troupe
