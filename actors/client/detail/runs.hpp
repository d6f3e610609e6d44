// Runs of compiled steps: sent, logged, waited for, and done again in another runtime.
#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <vector>

#include "actors/client/detail/session_core.hpp"
#include "core/feeds.hpp"
#include "devices/lent_thread.hpp"

namespace troupe {
namespace detail {

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
  std::atomic<bool> reads{false};            // Compiled::only_reads
  bool with_place = false;  // a step of the session itself: answers contain the job's place
  bool only_reads = false;  // changes nothing, not even places of datasets
  bool takes = false;       // elements of queues
  std::vector<std::string> files = {};     // of checkpoints, that it reads
  std::shared_ptr<const JobPlace> resume;  // the place of a job that its runs restore

  // Was compiled by the runtime of that generation.
  void is(const Compiled& compiled, std::uint64_t of) {
    reads = compiled.only_reads;
    id = compiled.id;
    generation = of;
  }
};

// Whether runs are logged, and this thread does not do them again.
bool is_logged(const SessionCore& core);

// Calls `f`, which moves the place of the job, while no thread keeps the state or goes back to it.
template <class F>
auto at_gate(SessionCore& core, F f) -> decltype(f()) {
  std::shared_lock<std::shared_mutex> open;
  if (is_logged(core)) open = std::shared_lock(core.gate);
  return f();
}

// Calls `f`, which moves the place of the job, and logs it, so that a recovery repeats it.
// `bytes`: that the log holds with it.
Status move_at_gate(SessionCore& core, const std::function<CallResult()>& f, std::size_t bytes = 0);

// The options for what is left of a call that began then: less of the timeout, if there is one.
RunOptions rest_of(const RunOptions& options, std::chrono::steady_clock::time_point began);

// Sends the run; it is done when run.call is. A `waiter` computes while it waits.
void start(const Step& step, std::vector<Tensor> feeds, const RunOptions& options, Run& run,
           LentThread* waiter = nullptr);
// Tells how stale a run was, and counts one that was not committed because of a NaN.
void count(const RunOptions& options, const CallResult& result);

// Compiles the step in the current runtime.
Status compile_anew(Step& step, CompiledId used);
// Compiles a new step, by compile_request or compile_again.
Status compile_first(Step& step, Expected<Compiled> compile(SessionCore&, const CompileRequest&));

// Runs the step; again in another runtime each time that a part is lost and the session can recover
// from a kept state. Sets `answer` if it returns ok.
Status run_to_end(Step& step, const std::vector<Tensor>& feeds, const RunOptions& options,
                  CallResult& answer);

// Recovers from the loss of a part of runtime number `lost` (recovery.hpp).
Status recover(const std::shared_ptr<SessionCore>& core, std::uint64_t lost, const Status& why);

inline const Status& status_of(const Status& status) { return status; }
template <class T>
const Status& status_of(const Expected<T>& result) {
  return result.status();
}

// Calls `f`; again in another runtime each time that a part is lost and the session can recover
// from a kept state. Not again once `f` has set `committed`: what failed has, nevertheless.
template <class F>
auto in_some_runtime(const std::shared_ptr<SessionCore>& core, F f,
                     const CommitNumber& committed = 0) -> decltype(f()) {
  for (;;) {
    const std::uint64_t generation = core->generation;
    auto result = f();
    if (result.ok() || committed != 0) return result;
    const Status& status = status_of(result);
    const bool again = core->generation != generation;
    if ((!again && status.code() != Code::unavailable) || !core->keeps ||
        core->passes.load() == std::this_thread::get_id())
      return result;
    if (Status recovered = recover(core, generation, status); !recovered.ok()) return recovered;
  }
}

}  // namespace detail

struct PendingRun::State : detail::Run {
  RunOptions options;
  std::atomic<bool> counted{false};
  // The fetches or the error. Waits only for the run.
  Expected<std::vector<Tensor>> fetched();
};
struct CompiledStep::State : detail::Step {};

}  // namespace troupe
