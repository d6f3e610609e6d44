#include "actors/processes/task_hosts.hpp"

namespace troupe {

std::optional<ProcessId> TaskHosts::process_of(TaskId task) const {
  auto at = processes_.find(task);
  if (at == processes_.end()) return std::nullopt;
  return at->second;
}

std::vector<TaskId> TaskHosts::tasks_of(ProcessId process) const {
  std::vector<TaskId> tasks;
  for (const auto& [task, host] : processes_)
    if (host == process) tasks.push_back(task);
  return tasks;
}

}  // namespace troupe
