#include "apps/commands/progress.hpp"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <utility>

#include "apps/commands/print.hpp"

namespace troupe {
namespace {

constexpr int kWidestBar = 30, kNarrowestBar = 5;

int columns_of_terminal() {
  winsize size{};
  return ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : 80;
}

}  // namespace

std::string progress_text(const TrainOptions::Progress& p) {
  std::string text = fmt::format("step {}/{}  loss {:.4f}", p.step, p.steps, p.loss);
  if (p.steps_per_second > 0) text += fmt::format("  {:.1f} steps/s", p.steps_per_second);
  return text;
}

std::string progress_bar(const TrainOptions::Progress& p, int columns) {
  const std::string text = progress_text(p);
  const int left = columns - 1 - int(text.size()) - int(std::string_view("[] ").size());
  if (left < kNarrowestBar) return text.substr(0, std::size_t(std::max(0, columns - 1)));
  const int width = std::min(left, kWidestBar);
  const double done = double(p.step) / double(std::max<std::int64_t>(1, p.steps));
  const int full = std::clamp(int(done * width), 0, width);
  return fmt::format("[{}{}] {}", std::string(std::size_t(full), '='),
                     std::string(std::size_t(width - full), ' '), text);
}

ProgressLine::ProgressLine(bool quiet)
    : quiet_(quiet), bar_(isatty(2) && !std::getenv("CI") && !std::getenv("NO_COLOR")) {}

ProgressLine::~ProgressLine() { close(); }

void ProgressLine::close() {
  if (std::exchange(shown_, 0) > 0) write_err("\n");
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
  if (!bar_) return print_err("{}\n", progress_text(p));
  const int columns = columns_of_terminal();
  const std::string line = progress_bar(p, columns);
  // Over what is longer there, unless the terminal has become too narrow for that.
  const std::size_t before = std::min(shown_, std::size_t(std::max(0, columns - 1)));
  const std::size_t over = before > line.size() ? before - line.size() : 0;
  write_err("\r" + line + std::string(over, ' '));
  shown_ = std::max<std::size_t>(1, line.size());
}

}  // namespace troupe
