// Sessions of a job: their graphs, the steps compiled of them, runs and resets of those.
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

// The machine between clients, the compile thread and the tasks of a job: what is done in which
// order for a session, which steps exist and where, which runs use them. When a run computes and
// what it commits is the Coordinator's business, which stands beside it.
//
// Owned by one actor of the master. Inputs append to `out` what has to be done, in that order. A
// call is finished exactly once. Nothing here is lost or doubled, but for what a lost task had to
// say.
//
// Extend and Compile of one session are carried out in the order in which they came, each when the
// one before is answered; the compile thread does the work. A step is compiled when it is first
// asked for, and then loaded by every task that has a part in it.
//
// A reset waits for the runs of the steps that it drops: these leave the table at once, so that
// none of their runs begins any more, and their runs are cancelled. When the last of them is over
// the tasks unload the steps and drop the containers. Only then are steps compiled again.
class Sessions {
 public:
  struct Options {
    std::size_t compiled_steps = 64;  // kept a session; the least recently used one goes
    bool soft_placement = true;
    std::int32_t replicas = 1;  // of the job: with several, variables are spread over the tasks
    std::vector<std::string> disabled_passes;
  };

  struct Finish {
    std::shared_ptr<Call> call;
    CallResult result;
  };
  // For the compile thread, one piece of work after the other. Unless `stop` is set before it
  // begins, it answers with extended() or compiled(), naming the work.
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
  // The session is over: the compile thread and these tasks can forget its graph.
  struct Forget {
    std::uint64_t session = 0;
    std::vector<TaskId> tasks;
  };
  // To every task; and the containers' datasets begin anew.
  struct Drop {
    std::set<std::string> containers;
  };
  // To the coordinator: a session that may have runs from now on, or whose runs are to end, which
  // ends with closed().
  struct OpenRuns {
    std::uint64_t session = 0;
  };
  struct CloseRuns {
    std::uint64_t session = 0;
  };
  // To the coordinator. Each of them ends with ended(), unless it is decided already.
  struct CancelRuns {
    std::vector<RunId> runs;
    Status cause;
  };
  // To the coordinator, whose answer is the call's.
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
    std::shared_ptr<const StepShape> step;  // also when a reset has dropped it
    std::vector<Tensor> feeds;              // of the request
    std::uint32_t fetches = 0;
    std::int64_t began_ns = 0, prepared_ns = 0;  // of the timeline, which the owner keeps
  };

  explicit Sessions(Options options)
      : options_(std::move(options)), steps_(options_.compiled_steps) {}

  void task_up(TaskId task, std::string name, std::vector<TargetDevice> devices);
  // What is being compiled fails with the cause, as do the steps that it has not loaded yet.
  void task_lost(TaskId task, const Status& why, Outputs& out);
  // The job has lost state: nothing is compiled any more, for this reason.
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

  // Null: it is answered already. Takes the feeds.
  Run* begin(RunStep& message, Outputs& out);
  Run* find(const RunId& id);
  // Of a run that began; any other is ignored.
  void ended(RunAnswer& answer, Outputs& out);

  // "1 at 127.0.0.1:4711"; empty when nobody hosts it.
  std::string name_of(TaskId task) const;
  std::vector<std::string> text() const;  // a line for each task
  // Of variables, by container and name: the devices that have them; "" for one that no step has
  // placed yet.
  std::vector<std::string> homes_of(
      const std::vector<std::pair<std::string, std::string>>& variables) const;
  // Tasks, and what is being compiled and loaded: for what runs wait for.
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
    std::uint64_t work = 0;                      // that is under way for asked.front(); 0: none
    std::int64_t work_since_ns = 0;              // coarse_now_ns()
    LoadStep load;                               // what a CompileStep under way will be loaded with
    StopFlag stop;                               // of the work
    std::vector<std::shared_ptr<Call>> closing;  // who waits for its end
    std::set<std::string> warned;                // of devices that nodes asked for and did not get
  };
  struct PlacedVariable {
    std::string device;
    std::uint64_t bytes = 0;  // of its declared shape
  };
  struct Reset {
    std::set<std::string> containers;
    std::set<CompiledId> steps;     // whose runs it waits for
    std::vector<CompileStep> held;  // that were being loaded
    std::vector<std::shared_ptr<Call>> calls;
  };

  Session* find_open(std::uint64_t session);
  template <class Message>
  void ask_next(const Message& message, Outputs& out);
  void begin_next(Session& session, Outputs& out);
  void begin_work(Session& session);
  void give_up_work(Session& session);
  Session* worked_for(std::uint64_t session, std::uint64_t work);
  // True when it is answered already.
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
  // Of all steps so far, by container and name.
  std::map<std::pair<std::string, std::string>, PlacedVariable> variables_;
  std::optional<Reset> reset_;
  std::uint64_t next_work_ = 1;
  CompiledId next_compiled_ = 1;
  Status stopped_;
};

}  // namespace troupe
