// The sessions of a job: their graphs, compiled steps, runs and resets.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <variant>
#include <vector>

#include "actors/master/kept_answers.hpp"
#include "actors/master/run_table.hpp"
#include "actors/master/session_graphs.hpp"
#include "actors/master/step_table.hpp"
#include "actors/master/wait_lines.hpp"
#include "actors/messages.hpp"

namespace troupe {

// The state machine between clients, the compile thread and the tasks of a job: it orders the work
// of a session, and knows which steps exist, where, and which runs use them. The Coordinator
// decides when a run computes and what it commits.
//
// Owned by one actor of the master. Inputs append what must be done to `out`, in order. A call is
// finished exactly once. Its messages are neither lost nor duplicated, except those of a lost task.
//
// Extend and Compile of one session are carried out in order, each after the one before is
// answered; the compile thread does the work. A step is compiled on its first request, and then
// loaded by every task that has a part in it.
//
// A reset removes its steps from the table at once, so that no more runs of them begin, and cancels
// their runs. When the last run is over, the tasks unload the steps and drop the containers. Only
// then are steps compiled again.
class Sessions {
 public:
  struct Options {
    std::size_t compiled_steps = 64;  // kept per session; the least recently used is evicted
    bool soft_placement = true;
    std::int32_t replicas = 1;  // of the job: with several, variables are spread over the tasks
    std::vector<std::string> disabled_passes;
  };

  struct Finish {
    std::shared_ptr<Call> call;
    CallResult result;
  };
  // To the compile thread, which does one piece of work after the other. Answered with extended()
  // or compiled() and the work's number, unless `stop` is set before it begins.
  struct Extend {
    std::uint64_t work = 0;
    StopFlag stop;
    ExtendSession message;
  };
  struct Compile {
    std::uint64_t work = 0;
    StopFlag stop;
    SessionGraphs::Work step;
  };
  struct SendGraph {
    TaskId task{};
    LoadGraph graph;
  };
  // Answered with loaded().
  struct SendStep {
    TaskId task{};
    LoadStep step;
  };
  // To every task.
  struct Unload {
    CompiledId step = 0;
  };
  // The session is over: the compile thread and these tasks forget its graph.
  struct Forget {
    std::uint64_t session = 0;
    std::vector<TaskId> tasks;
  };
  // To every task. The containers' datasets are rewound, too.
  struct Drop {
    std::set<std::string> containers;
  };
  // To the coordinator: the session may have runs from now on; or its runs must end, which is
  // answered with closed().
  struct OpenRuns {
    std::uint64_t session = 0;
  };
  struct CloseRuns {
    std::uint64_t session = 0;
  };
  // To the coordinator. Each run ends with ended(); one that is decided ends as it would have.
  struct CancelRuns {
    std::vector<RunId> runs;
    Status cause;
  };
  // To the coordinator, whose result answers the call.
  struct Rewind {
    std::shared_ptr<Call> call;
    std::shared_ptr<const StepShape> step;
  };
  struct Warn {
    std::string text;
  };
  using Output = std::variant<Finish, Extend, Compile, SendGraph, SendStep, Unload, Forget, Drop,
                              OpenRuns, CloseRuns, CancelRuns, Rewind, Warn>;
  using Outputs = std::vector<Output>;

  // A run from its request to its answer.
  struct Run {
    std::shared_ptr<Call> call;
    CompiledId compiled = 0;
    std::shared_ptr<const StepShape> step;  // even if a reset has dropped the step
    std::vector<Tensor> feeds;              // of the request
    std::uint32_t fetches = 0;
    std::int64_t began_ns = 0, prepared_ns = 0;  // for the timeline; set by the owner
  };

  explicit Sessions(Options options)
      : options_(std::move(options)), steps_(options_.compiled_steps) {}

  void task_up(TaskId task, std::string name, std::vector<TargetDevice> devices);
  // Fails what is being compiled, and the steps that the task has not loaded yet.
  void task_lost(TaskId task, const Status& why, Outputs& out);
  // The job has lost state: from now on, compiling fails with this status.
  void stop(Status why) { stopped_ = std::move(why); }

  void open(const OpenSession& message, Outputs& out);
  void ask(const ExtendSession& message, Outputs& out);
  void ask(const CompileStep& message, Outputs& out);
  void extended(const GraphExtended& message, Outputs& out);
  void compiled(const StepCompiled& message, Outputs& out);
  void loaded(const StepLoaded& message, Outputs& out);
  void close(const CloseSession& message, Outputs& out);
  // All runs of the session are answered.
  void closed(std::uint64_t session, Outputs& out);
  void reset(const ResetContainers& message, Outputs& out);
  void rewind(const RewindStep& message, Outputs& out);

  // Null if the run was refused, and answered. Takes the call and the feeds.
  Run* begin(RunStep& message, Outputs& out);
  Run* find(const RunId& id);
  // Ignored for an unknown run.
  void ended(RunAnswer& answer, Outputs& out);

  // "1 at 127.0.0.1:4711"; empty if no process hosts it.
  std::string name_of(TaskId task) const;
  std::vector<std::string> text() const;  // a line for each task
  // The devices of variables, given by container and name; "" for one that no step has placed yet.
  std::vector<std::string> homes_of(
      const std::vector<std::pair<std::string, std::string>>& variables) const;
  // Adds the tasks, and what is being compiled and loaded.
  void look(JobLook& look) const;
  std::size_t steps() const { return steps_.size(); }
  struct Tables {
    std::size_t sessions = 0, asked = 0, steps = 0, runs = 0, resets = 0;
    bool empty() const { return sessions + asked + steps + runs + resets == 0; }
  };
  Tables tables() const;

 private:
  struct Task {
    std::string name;
    std::vector<TargetDevice> devices;
    std::map<std::uint64_t, std::uint64_t> graphs;  // session -> version it has
  };
  struct Session {
    std::uint64_t version = 0;  // nodes of its graph
    std::deque<std::variant<ExtendSession, CompileStep>> asked;
    std::uint64_t work = 0;                      // under way for asked.front(); 0: none
    std::int64_t work_since_ns = 0;              // coarse_now_ns()
    LoadStep load;                               // of the CompileStep under way
    StopFlag stop;                               // of the work
    std::vector<std::shared_ptr<Call>> closing;  // calls that wait for its end
    std::set<std::string> warned;                // warnings given: nodes not on their devices
  };
  struct PlacedVariable {
    std::string device;
    std::uint64_t bytes = 0;  // of its declared shape
  };
  struct Reset {
    std::set<std::string> containers;
    std::set<CompiledId> steps;     // it waits for their runs
    std::vector<CompileStep> held;  // requests for steps that were being loaded
    std::vector<std::shared_ptr<Call>> calls;
  };

  Session* find_open(std::uint64_t session);
  template <class Message>
  void ask_next(const Message& message, Outputs& out);
  void begin_next(Session& session, Outputs& out);
  void begin_work(Session& session);
  void give_up_work(Session& session);
  Session* worked_for(std::uint64_t session, std::uint64_t work);
  // True if it is answered already.
  Expected<bool> begin_compile(Session& session, const CompileStep& message, Outputs& out);
  Status add_step(Session& session, const CompileStep& message, CompiledStepDraft& draft,
                  Outputs& out);
  void warn(Session& session, const std::vector<std::string>& notes, Outputs& out);
  void send_loads(Session& session, StepEntry& step, CompiledStepDraft& draft, Outputs& out);
  std::vector<TargetDevice> all_devices() const;
  void end_reset_if_over(Outputs& out);
  void ask_again(const CompileStep& held, Outputs& out);

  const Options options_;
  StepTable steps_;
  std::map<TaskId, Task> tasks_;
  std::map<std::uint64_t, Session> sessions_;
  std::unordered_map<RunId, Run> runs_;
  // The variables of all steps so far, by container and name.
  std::map<std::pair<std::string, std::string>, PlacedVariable> variables_;
  std::optional<Reset> reset_;
  std::uint64_t next_work_ = 1;
  CompiledId next_compiled_ = 1;
  Status stopped_;
};

}  // namespace troupe
