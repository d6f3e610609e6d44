// A row for each index, with one element set.
#pragma once

#include "ops/device/arguments.hpp"
#include "ops/device/types.cuh"

namespace troupe::device {

template <class T, class Index>
struct OneHot {
  using Args = OneHotArgs;
  __device__ static void run(const Args& a) {
    const T on = Store<T>::of(Compute<T>(a.on)), off = Store<T>::of(Compute<T>(a.off));
    const Index* at = static_cast<const Index*>(a.indices);
    for (std::int64_t o = first_element(); o < a.n; o += element_step())
      static_cast<T*>(a.y)[o] = std::int64_t(at[o / a.depth]) == o % a.depth ? on : off;
  }
};

}  // namespace troupe::device
