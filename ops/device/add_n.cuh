// ((a + b) + c) + d, element by element, rounded once.
#pragma once

#include "ops/device/arguments.hpp"
#include "ops/device/types.cuh"

namespace troupe::device {

// The sum goes on from `begun`, if that is there, and where it ends is rounded to y or left in
// `unfinished`. y may be the memory of the first input.
template <class T>
struct AddN {
  using Args = AddNArgs;
  using S = Compute<T>;
  __device__ static void run(const Args& a) {
    for (std::int64_t i = first_element(); i < a.n; i += element_step()) {
      S sum =
          a.begun ? static_cast<const S*>(a.begun)[i] : S(load(static_cast<const T*>(a.in[0])[i]));
      for (int k = a.begun ? 0 : 1; k < a.count; ++k)
        sum = S(sum + load(static_cast<const T*>(a.in[k])[i]));
      if (a.unfinished)
        static_cast<S*>(a.unfinished)[i] = sum;
      else
        static_cast<T*>(a.y)[i] = Store<T>::of(sum);
    }
  }
};

}  // namespace troupe::device
