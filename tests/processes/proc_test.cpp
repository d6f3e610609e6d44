#include "actors/processes/proc.hpp"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <optional>
#include <string>

#include "tests/serialization/temporary.hpp"

using namespace troupe;
using troupe::testing::TemporaryDir;

TEST_CASE("the state of a process is read behind its name, whatever that is") {
  const auto stopped = [](std::string_view text) {
    const auto stat = parse_stat(text);
    return stat && stat->stopped();
  };
  CHECK(stopped("12 (troupe) T 1 12 12"));
  CHECK(stopped("12 (troupe) t 1 12 12"));
  CHECK(!stopped("12 (troupe) S 1 12 12"));
  CHECK(!stopped("12 (a) T 1) S 1 12 12"));
  CHECK(stopped("12 (a) S 1) T 1 12 12"));
  for (const char* none : {"", "12", "12 (a)", "12 (a) "}) CHECK(!parse_stat(none));
}

TEST_CASE("the parent and the start of a process are the 4th and the 22nd field") {
  std::string text = "12 (a b) c\nd) S 7";
  CHECK(parse_stat(text)->parent == 7);
  CHECK(parse_stat(text)->start == 0);  // cut off
  for (int field = 5; field < 22; ++field) text += " " + std::to_string(-field);
  CHECK(parse_stat(text + " 4711 5 6\n")->start == 4711);
  CHECK(parse_stat(text + " 4711\n")->start == 4711);
  CHECK(parse_stat(text + " 4711")->start == 4711);
  CHECK(parse_stat(text + " ")->start == 0);
  CHECK(parse_stat(text + " 4711")->state == 'S');
  CHECK(parse_stat("12 (a) R x")->parent == 0);
}

TEST_CASE("the times of a process are the 14th and 15th field, its memory is the 24th") {
  std::string text = "12 (a b) S";
  for (int field = 4; field <= 24; ++field) text += " " + std::to_string(1 << (field - 4));
  CHECK(parse_stat(text)->cpu == (1 << 10) + (1 << 11));
  CHECK(parse_stat(text)->resident == 1 << 20);
  CHECK(parse_stat("12 (a b) S 7")->cpu == 0);
  CHECK(parse_stat("12 (a b) S 7")->resident == 0);
}

TEST_CASE("a process of any name has a start and a parent") {
  const auto self = stat_of(getpid());
  REQUIRE(self);
  CHECK(self->parent == getppid());
  CHECK(self->state == 'R');
  int ready[2];
  REQUIRE(pipe(ready) == 0);
  const pid_t child = fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    prctl(PR_SET_NAME, "a) \n(b");
    (void)!write(ready[1], "x", 1);
    for (;;) pause();
  }
  char byte = 0;
  REQUIRE(read(ready[0], &byte, 1) == 1);
  const auto stat = stat_of(child);
  REQUIRE(stat);
  CHECK(stat->parent == getpid());
  CHECK(stat->start >= self->start);
  CHECK(start_of(child) == stat->start);
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
  CHECK(!stat_of(child));
  CHECK(start_of(child) == 0);
  for (int end : ready) close(end);
}

TEST_CASE("a variable of a process is that with the whole name") {
  const pid_t child = fork();
  if (child == 0) {
    const char* const argv[] = {"tail", "-f", "/dev/null", nullptr};
    const char* const variables[] = {"TROUPE_LIFETIME=1", "TROUPE_LIFE=a=b", "EMPTY=", nullptr};
    execvpe("tail", const_cast<char* const*>(argv), const_cast<char* const*>(variables));
    _exit(1);
  }
  REQUIRE(child > 0);
  // Before exec it has those of this process.
  std::optional<std::string> empty;
  while (!(empty = variable_of(child, "EMPTY"))) usleep(1000);
  CHECK(*empty == "");
  CHECK(variable_of(child, "TROUPE_LIFE") == "a=b");
  CHECK_FALSE(variable_of(child, "TROUPE"));
  kill(child, SIGKILL);
  REQUIRE(waitpid(child, nullptr, 0) == child);
  CHECK_FALSE(variable_of(child, "TROUPE_LIFE"));
}

TEST_CASE("a program whose file was removed or replaced can be run once more all the same") {
  namespace fs = std::filesystem;
  const TemporaryDir dir;
  const std::string file = fs::canonical(fs::path(dir.path("x")).parent_path()) / "sleeper";
  fs::copy_file("/usr/bin/tail", file);
  int ends[2];
  REQUIRE(pipe2(ends, O_CLOEXEC) == 0);
  const pid_t child = fork();
  if (child == 0) {
    execl(file.c_str(), "sleeper", "-f", "/dev/null", nullptr);
    _exit(1);
  }
  REQUIRE(child > 0);
  close(ends[1]);
  char none = 0;
  CHECK(read(ends[0], &none, 1) == 0);  // it runs
  close(ends[0]);
  const std::string link = "/proc/" + std::to_string(child) + "/exe";
  CHECK(value_or_throw(program_of(link)) == file);
  fs::remove(file);
  CHECK(value_or_throw(program_of(link)) == link);
  fs::copy_file("/usr/bin/head", file);
  CHECK(value_or_throw(program_of(link)) == link);
  fs::copy_file("/usr/bin/head", file + " (deleted)");  // as the kernel calls the old one
  CHECK(value_or_throw(program_of(link)) == link);
  kill(child, SIGKILL);
  REQUIRE(waitpid(child, nullptr, 0) == child);
  CHECK_FALSE(program_of(link).ok());
}
