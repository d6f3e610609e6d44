#include "apps/commands/progress.hpp"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <iterator>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "core/log.hpp"
#include "tests/apps/command.hpp"

using namespace troupe;

namespace {

TrainOptions::Progress at(std::int64_t step, double speed) { return {step, 1000, 0.1234f, speed}; }

}  // namespace

TEST_CASE("progress names the speed once it is known") {
  CHECK(progress_text(at(1, 0)) == "step 1/1000  loss 0.1234");
  CHECK(progress_text(at(2, 12.34)) == "step 2/1000  loss 0.1234  12.3 steps/s");
}

TEST_CASE("a progress bar fits the terminal, however narrow that is") {
  for (int columns = 0; columns < 120; ++columns) {
    CAPTURE(columns);
    for (std::int64_t step : {0, 1, 500, 1000, 2000}) {
      const std::string line = progress_bar(at(step, 123.4), columns);
      CHECK(int(line.size()) <= std::max(0, columns - 1));
      if (columns > 45) CHECK(line.find("123.4 steps/s") != std::string::npos);
      if (columns > 60) CHECK(line.front() == '[');
    }
  }
  CHECK(progress_bar(at(500, 0), 200).starts_with("[===============               ] step 500/"));
  CHECK(progress_bar(at(1000, 0), 200).starts_with("[==============================] step"));
}

namespace {

// What a command prints to a terminal of so many columns. Its results go there, too.
std::string on_terminal(const std::string& arguments, unsigned short columns) {
  const int terminal = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
  REQUIRE(terminal >= 0);
  REQUIRE(grantpt(terminal) == 0);
  REQUIRE(unlockpt(terminal) == 0);
  const std::string name = ptsname(terminal);
  const int other = open(name.c_str(), O_RDWR | O_NOCTTY | O_CLOEXEC);
  winsize size{24, columns, 0, 0};
  REQUIRE(ioctl(terminal, TIOCSWINSZ, &size) == 0);
  const std::string line = "env -u CI -u NO_COLOR " + troupe_program() + " " + arguments + " >" +
                           name + " 2>&1 </dev/null &";
  REQUIRE(std::system(line.c_str()) == 0);
  std::string said;
  char piece[4096];
  while (said.find("params_sha256") == std::string::npos && said.size() < 1'000'000) {
    const ssize_t n = read(terminal, piece, sizeof piece);
    if (n <= 0) break;
    said.append(piece, std::size_t(n));
  }
  close(other);
  close(terminal);
  return said;
}

}  // namespace

TEST_CASE("on a terminal the result stands below the progress, which stays on its line") {
  for (unsigned short columns : {80, 40}) {
    CAPTURE(columns);
    const std::string said =
        on_terminal("train mnist-softmax --examples 128 --batch 16 --steps 8", columns);
    CAPTURE(said);
    REQUIRE(said.find("params_sha256") != std::string::npos);
    CHECK(said.find("\nmnist-softmax: 8 steps") != std::string::npos);
    CHECK(said.find(" 0.0 steps/s") == std::string::npos);
    // No line that is renewed is as long as the terminal is wide.
    for (std::size_t from = said.find('\r'); from != std::string::npos;) {
      const std::size_t to = said.find_first_of("\r\n", from + 1);
      if (to == std::string::npos) break;
      if (said.compare(from, 6, "\r\n") != 0 && said.find("step ", from) < to)
        CHECK(to - from - 1 < columns);
      from = said.find('\r', from + 1);
    }
  }
}

namespace {

// A terminal of so many columns in the place of this process's stderr while it lives.
class Terminal {
 public:
  explicit Terminal(unsigned short columns) : ours_(posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC)) {
    REQUIRE(ours_ >= 0);
    REQUIRE(grantpt(ours_) == 0);
    REQUIRE(unlockpt(ours_) == 0);
    theirs_ = open(ptsname(ours_), O_RDWR | O_NOCTTY | O_CLOEXEC);
    winsize size{24, columns, 0, 0};
    REQUIRE(ioctl(ours_, TIOCSWINSZ, &size) == 0);
    unsetenv("CI");
    unsetenv("NO_COLOR");
    stderr_ = dup(STDERR_FILENO);
    dup2(theirs_, STDERR_FILENO);
  }
  ~Terminal() {
    dup2(stderr_, STDERR_FILENO);
    for (int descriptor : {stderr_, theirs_, ours_}) close(descriptor);
  }

  // The lines that stand on it, once `end` was written to it.
  std::vector<std::string> screen(const std::string& end) {
    std::string said;
    char piece[4096];
    while (said.find(end) == std::string::npos) {
      const ssize_t n = read(ours_, piece, sizeof piece);
      if (n <= 0) break;
      said.append(piece, std::size_t(n));
    }
    std::vector<std::string> lines(1);
    std::size_t column = 0;
    for (char c : said) {
      if (c == '\r') {
        column = 0;
      } else if (c == '\n') {
        lines.emplace_back();
      } else {
        std::string& line = lines.back();
        if (line.size() <= column) line.resize(column + 1, ' ');
        line[column++] = c;
      }
    }
    for (std::string& line : lines) line.resize(line.find_last_not_of(' ') + 1);
    return lines;
  }

 private:
  int ours_, theirs_ = -1, stderr_ = -1;
};

}  // namespace

TEST_CASE("what is logged while a bar is shown stands above it") {
  Terminal terminal(80);
  set_log_level(LogLevel::warning);
  {
    ProgressLine line(false);
    log_line(LogLevel::warning, "test", "before the first step");
    line.show(at(500, 0));
    log_line(LogLevel::warning, "test", "short");
    std::thread([] { log_line(LogLevel::error, "test", "of another thread"); }).join();
    line.show(at(501, 0));
    line.say("a line of its own");
    log_line(LogLevel::warning, "test", "without a bar");
    line.show(at(502, 0));
    log_line(LogLevel::warning, "test", std::string(100, 'x'));
  }
  log_line(LogLevel::warning, "test", "after it");
  const std::vector<std::string> lines = terminal.screen("after it\r\n");
  const char* const ends[] = {"test: before the first step",
                              "test: short",
                              "test: of another thread",
                              "] step 501/1000  loss 0.1234",
                              "a line of its own",
                              "test: without a bar",
                              "xxx",
                              "] step 502/1000  loss 0.1234",
                              "test: after it",
                              ""};
  REQUIRE(lines.size() == std::size(ends));
  for (std::size_t k = 0; k < lines.size(); ++k) {
    CAPTURE(lines[k]);
    CHECK(lines[k].ends_with(ends[k]));
    const bool bar = std::string_view(ends[k]).starts_with("]");
    CHECK((lines[k].find('[') != std::string::npos) == bar);
    CHECK((lines[k].find("step") != std::string::npos) == (bar || k == 0));
  }
}
