#include "core/task_id.hpp"

#include "core/check.hpp"

namespace troupe {

TaskId task_of(const DeviceName& device) {
  TROUPE_CHECK(device.task && *device.task >= 0, "the device belongs to a task");
  return TaskId(*device.task);
}

TaskId task_of(std::string_view device) {
  auto name = DeviceName::parse(device);
  TROUPE_CHECK(name.ok(), "a plan's device has a name");
  return task_of(*name);
}

}  // namespace troupe
