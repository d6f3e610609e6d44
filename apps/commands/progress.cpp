#include "apps/commands/progress.hpp"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <utility>

#include "apps/commands/print.hpp"
#include "core/log_writer.hpp"

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
    : quiet_(quiet), bar_(isatty(2) && !std::getenv("CI") && !std::getenv("NO_COLOR")) {
  if (bar_ && !quiet_) set_log_writer([this](std::string_view line) { log(line); });
}

ProgressLine::~ProgressLine() {
  if (bar_ && !quiet_) set_log_writer({});
  close();
}

// What removes the bar. A terminal that has become narrower since shows a part of it only.
std::string ProgressLine::blank() const {
  if (shown_.empty()) return "";
  const std::size_t columns = std::size_t(std::max(0, columns_of_terminal() - 1));
  return "\r" + std::string(std::min(shown_.size(), columns), ' ') + "\r";
}

// In one write, so that nothing comes between the line and the bar.
void ProgressLine::log(std::string_view line) {
  std::lock_guard lock(mutex_);
  write_err(blank() + std::string(line) + shown_);
}

void ProgressLine::close() {
  std::lock_guard lock(mutex_);
  if (!std::exchange(shown_, {}).empty()) write_err("\n");
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
  std::string line = progress_bar(p, columns);
  std::lock_guard lock(mutex_);
  // Over what is longer there, unless the terminal has become too narrow for that.
  const std::size_t before = std::min(shown_.size(), std::size_t(std::max(0, columns - 1)));
  const std::size_t over = before > line.size() ? before - line.size() : 0;
  write_err("\r" + line + std::string(over, ' '));
  if (line.empty()) line = " ";  // a terminal of one column
  shown_ = std::move(line);
}

}  // namespace troupe
