#include "actors/processes/children.hpp"

#include <doctest/doctest.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <map>
#include <string>
#include <thread>
#include <vector>

using namespace troupe;
using namespace std::chrono_literals;

namespace {

constexpr std::chrono::seconds kPatience{60};
constexpr int kNowhere = -1;  // what children of tests print is for nobody

struct Quiet : Children {
  explicit Quiet(Ended ended = {}) : Children(std::move(ended), kNowhere) {}
};

pid_t shell(Children& children, const std::string& script, const std::string& input = "") {
  return children.start("/bin/sh", {"-c", script}, input).value();
}

// How a shell that runs the script ends by itself.
ChildEnd end_of(const std::string& script, const std::string& input = "") {
  Quiet children;
  pid_t child = shell(children, script, input);
  children.wait(kPatience);
  return children.end_of(child).value();
}

// Returns when it is.
void wait_until_stopped(pid_t child) {
  siginfo_t info{};
  REQUIRE(waitid(P_PID, id_t(child), &info, WSTOPPED | WNOWAIT) == 0);
}

}  // namespace

TEST_CASE("a child reads its input to the end, and its exit code and words are kept") {
  ChildEnd end = end_of("cat <&3; exit 7", "settings, and a secret");
  CHECK(end.code == 7);
  CHECK(end.signal == 0);
  CHECK(end.last_words == "settings, and a secret");
  CHECK(end.text() == "ended with exit code 7, having said 'settings, and a secret'");
}

TEST_CASE("words come from both streams, and a signal that ends a child is named") {
  ChildEnd end = end_of("echo first; echo 'and last' >&2; kill -ABRT $$");
  CHECK(end.signal == SIGABRT);
  CHECK(end.last_words == "first | and last");
  CHECK(end.text() == "was ended by signal 6 (Aborted), having said 'first | and last'");
  CHECK(end_of("exit 0").text() == "ended with exit code 0");
}

TEST_CASE("the last words of a child that prints a lot are its last lines") {
  ChildEnd end = end_of("seq 2000; echo the end");
  CHECK(end.last_words.size() < 600);
  CHECK(end.last_words.find("1999 | 2000 | the end") != std::string::npos);
  CHECK(end.last_words.substr(0, 2) == "19");
}

TEST_CASE("words that are no text cannot spoil a message") {
  CHECK(end_of("printf '\\tone\\001\\033[1m\\377\\ntwo\\r\\n\\n'").last_words == "one??[1m? | two");
}

TEST_CASE("what children print is passed on") {
  int ends[2];
  REQUIRE(pipe(ends) == 0);
  {
    Children children({}, ends[1]);
    shell(children, "echo to one stream; echo to the other >&2");
    children.wait(kPatience);
  }
  close(ends[1]);
  std::string passed(100, '\0');
  passed.resize(std::size_t(std::max<ssize_t>(0, read(ends[0], passed.data(), passed.size()))));
  close(ends[0]);
  CHECK(passed == "to one stream\nto the other\n");
}

TEST_CASE("what a living child said can be asked for, and it may close its streams") {
  Quiet children;
  pid_t child = shell(children, "echo here I am; exec >&- 2>&-; read wait <&3; sleep 1000");
  while (children.last_words(child) != "here I am" && !children.end_of(child))
    std::this_thread::yield();
  CHECK(!children.end_of(child));
  children.kill(child);
  children.wait(kPatience);
  CHECK(children.end_of(child)->signal == SIGKILL);
  CHECK(children.last_words(child) == "here I am");
}

TEST_CASE("the owner is told of each end once, before the wait for all is over") {
  std::map<pid_t, std::vector<std::string>> told;
  Quiet children([&](pid_t child, const ChildEnd& end) { told[child].push_back(end.text()); });
  std::vector<pid_t> started;
  for (int i = 0; i < 10; ++i) started.push_back(shell(children, "exit " + std::to_string(i)));
  children.wait(kPatience);
  for (int i = 0; i < 10; ++i)
    CHECK(told[started[std::size_t(i)]] ==
          std::vector<std::string>{"ended with exit code " + std::to_string(i)});
  CHECK(told.size() == 10);
}

TEST_CASE("a program that cannot be run is a status, which says which") {
  Quiet children;
  Status none = children.start("/no/such/program", {}, "").status();
  CHECK(none.text() == "not_found: cannot run '/no/such/program': No such file or directory");
  CHECK(children.start("/etc", {}, "").status().code() == Code::failed_precondition);
  CHECK(children.start("/bin/true", {}, std::string(1u << 20, 'x')).status().code() ==
        Code::invalid_argument);
  children.wait(kPatience);  // for nobody
}

TEST_CASE("a child that ends without reading its input does no harm") {
  for (int i = 0; i < 20; ++i) CHECK(end_of("exec 3<&-; exit 3", "unread").code == 3);
}

TEST_CASE("a process that a child leaves behind is not waited for") {
  ChildEnd end = end_of("sleep 1000 & echo $!");  // which keeps the pipe open
  CHECK(end.code == 0);
  const pid_t left = std::stoi(end.last_words);
  REQUIRE(left > 1);
  CHECK(::kill(left, SIGKILL) == 0);
}

TEST_CASE("a child is of this process's group, whose signals to end are not for the child") {
  Quiet children;
  pid_t child = children.start("/bin/sleep", {"1000"}, "").value();
  CHECK(getpgid(child) == getpgrp());
  for (int number : {SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2, SIGPIPE})
    REQUIRE(::kill(child, number) == 0);
  children.kill(child);
  children.wait(kPatience);
  CHECK(children.end_of(child)->signal == SIGKILL);
}

TEST_CASE("a child that is stopped is not waited for") {
  Quiet children;
  pid_t child = shell(children, "kill -STOP $$");
  wait_until_stopped(child);
  children.wait(24h);
  CHECK(children.end_of(child)->signal == SIGKILL);
}

TEST_CASE("a child that is stopped while it is waited for is not waited for any longer") {
  Quiet children;
  pid_t child = shell(children, "read go <&3; kill -STOP $$", "go\n");
  children.wait(24h);
  CHECK(children.end_of(child)->signal == SIGKILL);
}

TEST_CASE("a child that does not leave is killed when patience is over") {
  Quiet children;
  pid_t child = shell(children, "exec sleep 1000");
  children.wait(0ms);
  CHECK(children.end_of(child)->signal == SIGKILL);
}

TEST_CASE("a wait for children ends although nobody reads what they print") {
  int ends[2];
  REQUIRE(pipe(ends) == 0);
  {
    Children children({}, ends[1]);
    pid_t child = shell(children, "seq 100000");  // more than the pipe holds
    // The pipe is full once its writer is stuck: nothing more can be written.
    pollfd room{ends[1], POLLOUT, 0};
    while (::poll(&room, 1, 0) > 0 && !children.end_of(child)) std::this_thread::yield();
    CHECK(children.wait(0ms).empty());
    CHECK(children.end_of(child)->signal == SIGKILL);
  }
  close(ends[0]);
  close(ends[1]);
}

TEST_CASE("no child outlives its owner") {
  pid_t child = 0;
  {
    Quiet children;
    child = shell(children, "exec sleep 1000");
  }
  CHECK(::kill(child, 0) == -1);
}
