// The tasks of a job, and the devices that belong to them.
#pragma once

#include <cstdint>
#include <string_view>

#include "core/name.hpp"

namespace troupe {

// A task is a share of the job: its devices, the state that is on them, and the partitions of steps
// that run there. TaskId{k} has the devices /job:worker/task:k/... for as long as the job lives. A
// ProcessId names who hosts a task, which nothing but the hub has to know: state, partitions and
// messages about runs are for a task, wherever it is.
enum class TaskId : std::uint32_t {};

constexpr std::uint32_t number(TaskId task) { return std::uint32_t(task); }

// The task that the device belongs to. REQUIRES: a name with a task.
TaskId task_of(const DeviceName& device);
// REQUIRES: the text of such a name, as plans have it.
TaskId task_of(std::string_view device);

}  // namespace troupe
