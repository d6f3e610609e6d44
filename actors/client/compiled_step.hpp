// CompiledStep: a compiled request, which runs again and again; PendingRun: a run in progress. This
// header knows neither CAF nor threads.
#pragma once

#include <atomic>
#include <chrono>
#include <concepts>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <iterator>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "actors/client/staleness.hpp"
#include "core/ids.hpp"
#include "core/status.hpp"
#include "core/tensor.hpp"
#include "core/transaction.hpp"

namespace troupe {

class JobStep;  // actors/job/job.hpp

struct RunOptions {
  // Time limit from the call on; default: none. When it passes, the run ends with
  // deadline_exceeded; at once if it is 0 or negative.
  std::optional<std::chrono::nanoseconds> timeout = {};
  // What the program needs to know to continue after this run if it is restarted: 1 byte to 64 KiB,
  // kept with the run's commit (Session::place). A run with a note commits even if it writes
  // nothing. Without a note, that of the previous commit stays.
  std::optional<std::string> note = {};
  // What to do with the run if a fetched tensor has a NaN. Values other than `commit` cost a step
  // of one process a round of messages. A dropped run has used its dataset elements and its random
  // numbers; an element that it dequeued returns to the queue, for the next run.
  OnNan on_nan = OnNan::commit;
  // When the run's updates are made. `checked`: all is as if one run came after the other. A run
  // that read what another one has changed meanwhile is done again, unseen, and costs its time
  // twice.
  // `immediate` is for asynchronous training, of several threads or of one that starts several runs
  // at once. The run is done once, and its updates are made to the values of that moment, though
  // they were computed from those of its start. Less is promised then:
  //   - Still, all that it reads is of one moment; of its updates all are made, once, or none; and
  //     nobody sees a part of them.
  //   - Its gradients may be of older values than those that it updates (`staleness`).
  //   - An assignment replaces what others have written since: use updates and AssignAdd.
  //   - Results depend on timing. A session that keeps its state (Session::keep) cannot repeat a
  //     stale run, so a loss before the state is kept again ends it.
  Commit commit = Commit::checked;
  // If given, is told of each immediate run that commits how stale it was.
  std::shared_ptr<Staleness> staleness = {};
  // If given, counts the runs that OnNan::drop has dropped.
  std::shared_ptr<std::atomic<std::int64_t>> dropped = {};
  // The run returns once a checkpoint of the session's Job contains its effects, or, if it wrote
  // nothing, the state that it saw: its results then survive a killed process. One checkpoint
  // completes all durable runs that wait for it. If it cannot be written, or `timeout` passes
  // first, the run fails with that cause and a message that it did commit; committed() has the
  // number. failed_precondition without a Job that has a folder, and on the Job's own thread, which
  // would wait for itself.
  bool durable = false;
};

// A run in progress. Destroying the handle does not cancel the run. A default-constructed handle is
// empty; its methods fail with failed_precondition.
class PendingRun {
 public:
  bool done() const;
  // Waits for the run to end and returns its fetches. The Status of a failed run names the node,
  // op, device and the line that created the node.
  Expected<std::vector<Tensor>> try_get();
  std::vector<Tensor> get() { return value_or_throw(try_get()); }
  // Calls `f` once with what try_get() would return: at once if the run is over, else when it is,
  // on a thread of the runtime or of a client. `f` must not take long. It may start runs; what
  // waits for a session is refused there (failed_precondition). An exception that leaves it ends
  // the process. As with start(), a run that a lost worker ends has failed.
  void then(std::function<void(Expected<std::vector<Tensor>>)> f);
  // The commit number of the run; 0 if it wrote nothing. Throws Error (failed_precondition) unless
  // done().
  CommitNumber committed() const;
  // Whether the run did not begin, since its step is not loaded any more: the least recently used
  // steps are unloaded when many are compiled. See CompiledStep::load.
  bool unloaded() const;
  void cancel();

 private:
  friend class CompiledStep;
  struct State;
  std::shared_ptr<State> state_;
};

template <class... T>
class DatasetPass;

// What a fetch may be returned as: the element of a scalar, or the tensor.
template <class T>
concept FetchedAs = (dtype_of<T> != DType::invalid) || std::same_as<T, Tensor>;

// A compiled request: pruned, placed, partitioned, and loaded on its devices. Copies share it.
// Several threads may run it concurrently. Valid as long as its session is open. A
// default-constructed step is empty; running it fails with failed_precondition.
class CompiledStep {
 public:
  CompiledStep() = default;

  // Runs the step once and returns the fetches, in order. `feeds` are in the order given to
  // compile; their dtypes and shapes must match the ports. If a compute thread of the process is
  // idle, the calling thread computes in its place: kernels run on its stack, and if another thread
  // ends the run (close(), reset()), the call returns after the current kernel. The caller's
  // floating-point environment does not affect results. With a timeout, and in start(), the calling
  // thread computes only cheap nodes of a few hundred nanoseconds, at most 256 at a time.
  Expected<std::vector<Tensor>> try_run(std::vector<Tensor> feeds = {},
                                        const RunOptions& options = {}) const;
  std::vector<Tensor> run(std::vector<Tensor> feeds = {}, const RunOptions& options = {}) const {
    return value_or_throw(try_run(std::move(feeds), options));
  }
  // For steps that fetch scalars: auto [loss, accuracy] = step.run<float, float>(feeds); a Tensor
  // takes a fetch of any dtype and shape: run<float, Tensor>. Throws Error (invalid_argument) if
  // number or dtypes of the fetches differ.
  template <FetchedAs... T>
  requires(sizeof...(T) > 0) std::tuple<T...> run(std::vector<Tensor> feeds = {},
                                                  const RunOptions& options = {})
  const {
    const std::vector<Tensor> fetched = value_or_throw(try_run(std::move(feeds), options));
    throw_if_error(check_scalars(fetched, {dtype_of<T>...}));
    return scalars<T...>(fetched, std::index_sequence_for<T...>{});
  }
  // Of a step without feeds, with the options of a job's step (actors/job/job.hpp).
  template <std::same_as<JobStep> Step>
  std::vector<Tensor> run(const Step& step) const {
    return run({}, step);
  }
  template <FetchedAs... T, std::same_as<JobStep> Step>
  requires(sizeof...(T) > 0) std::tuple<T...> run(const Step& step)
  const { return run<T...>({}, step); }
  PendingRun start(std::vector<Tensor> feeds = {}, const RunOptions& options = {}) const;
  // Compiles the step once more, for start(). run() does so by itself where it is needed.
  void load() const { throw_if_error(try_load()); }
  Status try_load() const;

  // Restarts the datasets that the step reads, for all steps that read them. invalid_argument if
  // there are none; failed_precondition while a run that reads one of them is in progress.
  void rewind() const { throw_if_error(try_rewind()); }
  Status try_rewind() const;
  // Runs the step once; nullopt if one of its datasets has ended.
  std::optional<std::vector<Tensor>> next(const RunOptions& options = {}) const {
    return value_or_throw(try_next(options));
  }
  Expected<std::optional<std::vector<Tensor>>> try_next(const RunOptions& options = {}) const;
  // The same request compiled for one replica.
  CompiledStep single() const { return value_or_throw(try_single()); }
  Expected<CompiledStep> try_single() const;

  // Runs the step over its datasets once, from the first element to the last, as one replica:
  //
  //   for (auto [right, count] : evaluate.pass<float, std::int64_t>()) ...
  //
  // Each pass starts at the first element. Without types, an element is the vector of fetched
  // tensors. The pass over an endless dataset has no end.
  template <class... T>
  DatasetPass<T...> pass() const;

 private:
  template <class... T>
  friend class DatasetPass;
  friend class Session;
  // DType::invalid stands for a whole tensor.
  static Status check_scalars(const std::vector<Tensor>& fetched,
                              std::initializer_list<DType> wanted);
  template <FetchedAs T>
  static T value_of(const Tensor& fetched) {
    if constexpr (std::same_as<T, Tensor>)
      return fetched;
    else
      return fetched.item<T>();
  }
  template <class... T, std::size_t... I>
  static std::tuple<T...> scalars(const std::vector<Tensor>& fetched, std::index_sequence<I...>) {
    return {value_of<T>(fetched.at(I))...};
  }
  struct State;
  std::shared_ptr<State> state_;
};

// The range returned by CompiledStep::pass, for one iteration. Throws Error as run() does.
template <class... T>
class DatasetPass {
 public:
  class Iterator {
   public:
    explicit Iterator(const CompiledStep& step) : step_(&step), fetched_(step.next()) {}
    // Throws Error (out_of_range) after the last element.
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

}  // namespace troupe
