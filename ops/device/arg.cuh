// Where along a dimension the extreme value first stands.
#pragma once

#include "ops/device/arguments.hpp"
#include "ops/device/types.cuh"

namespace troupe::device {

// y[outer, inner] = the first place in x[outer, 0 .. n, inner] that More holds of against all
// others; that of the first NaN if there is one. A thread for each output.
template <class More, class T>
struct ArgExtreme {
  using Args = ReduceArgs;
  __device__ static void run(const Args& a) {
    for (std::int64_t o = first_element(); o < a.outer * a.inner; o += element_step()) {
      const T* x = static_cast<const T*>(a.x) + o / a.inner * a.n * a.inner + o % a.inner;
      std::int64_t at = 0;
      auto best = load(x[0]);
      for (std::int64_t i = 1; i < a.n && best == best; ++i) {
        const auto value = load(x[i * a.inner]);
        if (More{}(value, best) || value != value) {
          best = value;
          at = i;
        }
      }
      static_cast<std::int64_t*>(a.y)[o] = at;
    }
  }
};

}  // namespace troupe::device
