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

TEST_CASE("the state of a process is read behind its name, whatever that is") {
  CHECK(says_stopped("12 (troupe) T 1 12 12"));
  CHECK(says_stopped("12 (troupe) t 1 12 12"));
  CHECK(!says_stopped("12 (troupe) S 1 12 12"));
  CHECK(!says_stopped("12 (a) T 1) S 1 12 12"));
  CHECK(says_stopped("12 (a) S 1) T 1 12 12"));
  for (const char* none : {"", "12", "12 (a)", "12 (a) "}) CHECK(!says_stopped(none));
}
