// What the runs of a job wait for, from the state of the master and its tasks.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "actors/master/run_look.hpp"
#include "core/wait.hpp"
#include "serialization/messages/task_waits.hpp"

namespace troupe {

// A step that is being compiled or loaded.
struct CompileLook {
  std::string session;       // "session 0"
  CompiledId compiled = 0;   // 0: not loaded yet
  std::set<TaskId> loading;  // tasks that have not answered
  Instant age{};
};

// The state of a job at one moment.
struct JobLook {
  std::vector<RunLook> runs;
  std::vector<CompileLook> compiles;
  std::map<TaskId, std::string> tasks;  // all names: "1 at 127.0.0.1:4711"
  std::map<TaskId, TaskWaits> told;     // the tasks that have answered
  Instant asked_for{};                  // how long the others have not
};

// The waits of each run, the oldest run first.
std::vector<Wait> waits_of(const JobLook& look);
// The waits of one run as at most `most` lines.
std::string lines_of(const std::vector<Wait>& waits, const std::string& run, std::size_t most);
// Those of these runs, of each as many lines; "" for one that waits for nothing.
std::map<RunId, std::string> lines_of(const JobLook& look, const std::vector<RunId>& runs,
                                      std::size_t most);

// The parts of attempts that were sent to a task which does not know them. Includes messages that
// are still under way.
struct LostPart {
  RunId run;
  AttemptId attempt;
  std::uint32_t partition = 0;
  TaskId task{};
  friend auto operator<=>(const LostPart&, const LostPart&) = default;
};
std::vector<LostPart> lost_parts(const JobLook& look);

// Watches long runs: reports those without progress, and finds lost messages. A state machine
// without clock; look() is called every few seconds while a run takes long.
class WaitsWatch {
 public:
  // A run stands still if none of its nodes has begun or ended for that long. 0: never reported.
  explicit WaitsWatch(Instant still_after) : still_after_(still_after) {}

  struct Found {
    std::vector<std::string> still;  // a report for each run that newly stands still
    std::vector<LostPart> lost;      // seen twice, and too old to be under way
  };
  Found look(const JobLook& look, const std::vector<Wait>& waits);

 private:
  Instant still_after_;
  std::map<RunId, Instant> told_;     // the age at which the run is reported again
  std::map<LostPart, Instant> lost_;  // the run's age when the part was first seen
};

}  // namespace troupe
