#include "apps/commands/progress.hpp"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/ioctl.h>

#include <string>

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
    CHECK(said.find("0.0 steps/s") == std::string::npos);
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
