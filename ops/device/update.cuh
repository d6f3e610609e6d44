// Rules that update variables, element by element.
#pragma once

#include "ops/device/arguments.hpp"
#include "ops/device/types.cuh"

namespace troupe::device {

// Rule(values..., gradient) on each element, after Rule::of(scalars, step). New values may be in
// the memory of old ones, but for the step count, which all threads read.
template <class Rule, class T>
struct Update {
  using Args = UpdateArgs;
  __device__ static void run(const Args& a) {
    const T* scalars[kMostScalars];
    for (int i = 0; i < kMostScalars; ++i) scalars[i] = static_cast<const T*>(a.scalars[i]);
    const std::int64_t step = a.step ? *static_cast<const std::int64_t*>(a.step) + 1 : 0;
    const Rule rule = Rule::of(scalars, step);
    if (a.step && first_element() == 0) *static_cast<std::int64_t*>(a.new_step) = step;
    for (std::int64_t i = first_element(); i < a.n; i += element_step()) {
      T values[Rule::kValues];
      for (int k = 0; k < Rule::kValues; ++k) values[k] = static_cast<const T*>(a.old_values[k])[i];
      const T gradient = static_cast<const T*>(a.gradient)[i];
      if constexpr (Rule::kValues == 1)
        rule(values[0], gradient);
      else if constexpr (Rule::kValues == 2)
        rule(values[0], values[1], gradient);
      else if constexpr (Rule::kValues == 3)
        rule(values[0], values[1], values[2], gradient);
      else
        rule(values[0], values[1], values[2], values[3], gradient);
      for (int k = 0; k < Rule::kValues; ++k) static_cast<T*>(a.new_values[k])[i] = values[k];
    }
  }
};

}  // namespace troupe::device
