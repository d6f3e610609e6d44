// Progress on stderr: one line that renews itself on a terminal, plain lines elsewhere.
#pragma once

#include <chrono>
#include <mutex>
#include <string>
#include <string_view>

#include "apps/training.hpp"

namespace troupe {

// "step 5/100  loss 0.1234  10.0 steps/s", without the speed as long as it is not known.
std::string progress_text(const TrainOptions::Progress& progress);
// That behind a bar, for a terminal of so many columns: the bar gets what is left, or nothing, and
// a text that does not fit is cut. Always shorter than the line, which would begin a new one.
std::string progress_bar(const TrainOptions::Progress& progress, int columns);

// A terminal gets a bar, and what is logged meanwhile stands above it; with CI or
// NO_COLOR set, or when stderr is no terminal, a line is printed every two seconds. Silent when
// quiet. One at a time.
class ProgressLine {
 public:
  explicit ProgressLine(bool quiet);
  ~ProgressLine();
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;
  void show(const TrainOptions::Progress& progress);
  // A line of its own, also when quiet.
  void say(const std::string& line);
  // What is printed next stands on a line of its own. Before a result is printed.
  void close();

 private:
  void log(std::string_view line);
  std::string blank() const;

  const bool quiet_, bar_;
  mutable std::mutex mutex_;  // of what stands on the terminal: log lines come from any thread
  std::string shown_;         // the bar that can still be renewed
  std::chrono::steady_clock::time_point last_;
};

}  // namespace troupe
