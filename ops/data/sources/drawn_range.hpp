// A range of generated pictures: the words `SEED FIRST COUNT` of a source.
#pragma once

#include <cstdint>

#include "ops/data/stage_text.hpp"

namespace troupe {

struct DrawnRange {
  std::uint64_t seed = 0, first = 0;
  std::int64_t count = 0;
};

inline Expected<DrawnRange> drawn_range(const StageText& stage) {
  TROUPE_TRY(stage.takes(3, 3));
  DrawnRange range;
  TROUPE_TRY(range.seed, stage.seed(0));
  TROUPE_TRY(const std::int64_t first, stage.number(1, 0));
  range.first = std::uint64_t(first);
  TROUPE_TRY(range.count, stage.number(2, 0));
  return range;
}

}  // namespace troupe
