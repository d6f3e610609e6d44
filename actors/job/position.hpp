// How far a job has got.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "core/status.hpp"

namespace troupe {

// What a job needs to resume: the note of its place (Session::place).
struct JobPosition {
  std::int64_t step = 0;       // the last completed one
  int worse = 0;               // judgements in a row since the best one
  std::optional<double> best;  // the lowest loss that was judged
  std::int64_t best_step = 0;
  std::string note;  // the program's own

  std::string text() const;
  // data_loss for any other text.
  static Expected<JobPosition> parse(std::string_view text);
};

}  // namespace troupe
