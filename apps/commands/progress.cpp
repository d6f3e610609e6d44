#include "apps/commands/progress.hpp"
#include "apps/commands/print.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <utility>

namespace troupe {
namespace {

constexpr int kWidth = 30;

std::string bar(double done) {
  std::string text;
  for (int i = 0; i < kWidth; ++i) text += i < int(done * kWidth) ? '=' : ' ';
  return text;
}

}  // namespace

ProgressLine::ProgressLine(bool quiet)
    : quiet_(quiet), bar_(isatty(2) && !std::getenv("CI") && !std::getenv("NO_COLOR")) {}

ProgressLine::~ProgressLine() { close(); }

void ProgressLine::close() {
  if (std::exchange(open_, false)) print_err("\n");
}

void ProgressLine::say(const std::string& line) {
  close();
  print_err("{}\n", line);
}

void ProgressLine::show(const TrainOptions::Progress& p) {
  if (quiet_) return;
  auto now = std::chrono::steady_clock::now();
  bool last = p.step == p.steps;
  if (!bar_ && !last && now - last_ < std::chrono::seconds(2)) return;
  last_ = now;
  std::string line = fmt::format("step {}/{}  loss {:.4f}  {:.1f} steps/s", p.step, p.steps, p.loss,
                                 p.steps_per_second);
  if (!bar_) {
    print_err("{}\n", line);
    return;
  }
  print_err("\r[{}] {}   ",
             bar(double(p.step) / double(std::max<std::int64_t>(1, p.steps))), line);
  std::fflush(stderr);
  open_ = true;
}

}  // namespace troupe
