// Which process hosts which task.
#pragma once

#include <map>
#include <optional>
#include <vector>

#include "core/ids.hpp"
#include "core/task_id.hpp"

namespace troupe {

// The one place where tasks are mapped to processes. Senders name the task; the hub, which owns
// this table, finds the connection by it. A process that speaks for a task must be the one that
// hosts it.
//
// A task has one host at a time; a process may host several tasks, or none, such as the master's. A
// value without a lock: its owner has one.
class TaskHosts {
 public:
  // The task is hosted by that process from now on, and by no other.
  void place(TaskId task, ProcessId process) { processes_[task] = process; }
  // nullopt: no process hosts it yet.
  std::optional<ProcessId> process_of(TaskId task) const;
  bool hosts(ProcessId process, TaskId task) const { return process_of(task) == process; }
  std::vector<TaskId> tasks_of(ProcessId process) const;  // ascending

 private:
  std::map<TaskId, ProcessId> processes_;
};

}  // namespace troupe
