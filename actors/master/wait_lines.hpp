// What the runs of a job wait for: what the master and its tasks know, joined.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "actors/master/run_look.hpp"
#include "core/wait.hpp"
#include "serialization/messages/task_waits.hpp"

namespace troupe {

// A step that is being compiled, or that tasks have been told to load.
struct CompileLook {
  std::string session;       // "session 0"
  CompiledId compiled = 0;   // 0: not loaded yet
  std::set<TaskId> loading;  // who has not answered
  Instant age{};
};

// All that is known at one moment.
struct JobLook {
  std::vector<RunLook> runs;
  std::vector<CompileLook> compiles;
  std::map<TaskId, std::string> tasks;  // all, by name: "1 at 127.0.0.1:4711"
  std::map<TaskId, TaskWaits> told;     // those that have said what they do
  Instant asked_for{};                  // so long the others have not
};

// The waits of each run, the oldest run first.
std::vector<Wait> waits_of(const JobLook& look);
// Those that concern one run, as lines; at most `most`.
std::string lines_of(const std::vector<Wait>& waits, const std::string& run, std::size_t most);

// Parts of attempts that were given to a task which knows nothing of them. What is under way is one
// of them, too.
struct LostPart {
  RunId run;
  AttemptId attempt;
  std::uint32_t partition = 0;
  TaskId task{};
  friend auto operator<=>(const LostPart&, const LostPart&) = default;
};
std::vector<LostPart> lost_parts(const JobLook& look);

// Watches runs that take long: names what stands still, and finds messages that were lost. A
// machine without clock; it is shown the job every few seconds while a run takes long.
class WaitsWatch {
 public:
  // A run none of whose nodes has begun or ended for so long stands still. 0: nobody is told.
  explicit WaitsWatch(Instant still_after) : still_after_(still_after) {}

  struct Found {
    std::vector<std::string> still;  // a text for each run that newly stands still
    std::vector<LostPart> lost;      // were lost: seen twice, and too old to be under way
  };
  Found look(const JobLook& look, const std::vector<Wait>& waits);

 private:
  Instant still_after_;
  std::map<RunId, Instant> told_;     // the age at which it is told of again
  std::map<LostPart, Instant> lost_;  // the age of the run when it was first seen
};

}  // namespace troupe
