// How far a job is.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "core/status.hpp"

namespace troupe {

// What a job has to know to go on: the note of its place (Session::place).
struct JobPosition {
  std::int64_t step = 0;       // the last one that is over
  int worse = 0;               // judgements in a row since the best one
  std::optional<double> best;  // the least loss that was judged
  std::int64_t best_step = 0;
  std::string note;  // the program's own

  std::string text() const;
  // data_loss for a text that is no such note.
  static Expected<JobPosition> parse(std::string_view text);
};

}  // namespace troupe
