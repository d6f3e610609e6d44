#include "actors/processes/task_hosts.hpp"

#include <doctest/doctest.h>

using namespace troupe;

TEST_CASE("a task is where it was placed last") {
  TaskHosts hosts;
  CHECK_FALSE(hosts.process_of(TaskId{0}));
  hosts.place(TaskId{0}, 2);
  hosts.place(TaskId{1}, 1);
  CHECK(hosts.process_of(TaskId{0}) == ProcessId{2});
  CHECK(hosts.process_of(TaskId{1}) == ProcessId{1});
  CHECK_FALSE(hosts.process_of(TaskId{2}));

  hosts.place(TaskId{0}, 3);
  CHECK(hosts.process_of(TaskId{0}) == ProcessId{3});
  CHECK(hosts.hosts(3, TaskId{0}));
  CHECK_FALSE(hosts.hosts(2, TaskId{0}));
  CHECK_FALSE(hosts.hosts(0, TaskId{2}));  // nobody does, not even the master
}

TEST_CASE("a process may host several tasks, or none") {
  TaskHosts hosts;
  hosts.place(TaskId{2}, 1);
  hosts.place(TaskId{0}, 1);
  hosts.place(TaskId{1}, 2);
  CHECK(hosts.tasks_of(1) == std::vector{TaskId{0}, TaskId{2}});
  CHECK(hosts.tasks_of(2) == std::vector{TaskId{1}});
  CHECK(hosts.tasks_of(0).empty());
  hosts.place(TaskId{0}, 2);
  CHECK(hosts.tasks_of(1) == std::vector{TaskId{2}});
  CHECK(hosts.tasks_of(2) == std::vector{TaskId{0}, TaskId{1}});
}
