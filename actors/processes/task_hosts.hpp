// Which process hosts which task.
#pragma once

#include <map>
#include <optional>
#include <vector>

#include "core/ids.hpp"
#include "core/task_id.hpp"

namespace troupe {

// The one place where tasks become processes. Whoever has something for a task names the task; the
// hub, which owns this table, finds the connection by it. Whoever says that it speaks for a task
// must be the process that hosts it.
//
// A task has one host at a time; a process may host several tasks, or none, as the master's does. A
// value, without lock: its owner has one.
class TaskHosts {
 public:
  // From now on the task is there, and nowhere else.
  void place(TaskId task, ProcessId process) { processes_[task] = process; }
  // Nothing: nobody hosts it yet.
  std::optional<ProcessId> process_of(TaskId task) const;
  bool hosts(ProcessId process, TaskId task) const { return process_of(task) == process; }
  std::vector<TaskId> tasks_of(ProcessId process) const;  // ascending

 private:
  std::map<TaskId, ProcessId> processes_;
};

}  // namespace troupe
