#include "actors/processes/stopped.hpp"

#include <doctest/doctest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>

using namespace troupe;

TEST_CASE("a process is stopped from SIGSTOP to SIGCONT") {
  const pid_t child = fork();
  REQUIRE(child >= 0);
  if (child == 0)
    for (;;) pause();
  CHECK(!is_stopped(child));
  siginfo_t info{};
  kill(child, SIGSTOP);
  REQUIRE(waitid(P_PID, id_t(child), &info, WSTOPPED) == 0);
  CHECK(is_stopped(child));
  kill(child, SIGCONT);
  REQUIRE(waitid(P_PID, id_t(child), &info, WCONTINUED) == 0);
  CHECK(!is_stopped(child));
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
  CHECK(!is_stopped(child));  // nor is one that is not there
}
