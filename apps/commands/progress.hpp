// Progress on stderr: one line that renews itself on a terminal, plain lines elsewhere.
#pragma once

#include <chrono>
#include <string>

#include "apps/training.hpp"

namespace troupe {

// A terminal gets a bar; with CI or NO_COLOR set, or when stderr is no terminal, a line is printed
// every two seconds. Silent when quiet.
class ProgressLine {
 public:
  explicit ProgressLine(bool quiet);
  ~ProgressLine();
  void show(const TrainOptions::Progress& progress);
  // A line of its own, also when quiet.
  void say(const std::string& line);

 private:
  void close();

  bool quiet_, bar_;
  bool open_ = false;
  std::chrono::steady_clock::time_point last_;
};

}  // namespace troupe
