// Shapes of parameters: one value for each index of an input's last dimension.
#pragma once

#include "ops/op.hpp"

namespace troupe {

// [n] of an input `x` that is [..., n], where the inputs from `first` to `last` are [n], too.
inline Expected<PartialShape> last_dimension(const InferenceContext& c, int x, int first,
                                             int last) {
  TROUPE_TRY(c.want_rank_at_least(x, 1));
  PartialShape parameter = PartialShape::unknown_of_rank(1);
  if (c.shape(x).known_rank()) parameter.set_dim(0, c.shape(x)[c.shape(x).rank() - 1]);
  for (int i = first; i <= last; ++i) {
    TROUPE_TRY(c.want_rank(i, 1));
    TROUPE_TRY(parameter, PartialShape::merge(parameter, c.shape(i)));
  }
  return parameter;
}

}  // namespace troupe
