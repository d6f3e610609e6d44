// Rules that update variables, element by element.
#pragma once

#include "ops/device/arguments.hpp"
#include "ops/device/block.cuh"
#include "ops/device/rows.cuh"
#include "ops/device/types.cuh"
#include "ops/formulas/reduction.hpp"
#include "ops/formulas/updates.hpp"

namespace troupe::device {

// Rule::of(scalars, step). New values may be in the memory of old ones, but for the step count,
// which all threads read.
template <class Rule, class T>
__device__ inline Rule begin_update(const UpdateArgs& a) {
  const T* scalars[kMostScalars];
  for (int i = 0; i < kMostScalars; ++i) scalars[i] = static_cast<const T*>(a.scalars[i]);
  const std::int64_t step = a.step ? *static_cast<const std::int64_t*>(a.step) + 1 : 0;
  if (a.step && first_element() == 0) *static_cast<std::int64_t*>(a.new_step) = step;
  return Rule::of(scalars, step);
}

// Rule(values..., gradient) on element i.
template <class Rule, class T>
__device__ inline void update(const Rule& rule, const UpdateArgs& a, std::int64_t i, T gradient) {
  T values[Rule::kValues];
  for (int k = 0; k < Rule::kValues; ++k) values[k] = static_cast<const T*>(a.old_values[k])[i];
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

template <class Rule, class T>
struct Update {
  using Args = UpdateArgs;
  __device__ static void run(const Args& a) {
    const auto rule = begin_update<Rule, T>(a);
    for (std::int64_t i = first_element(); i < a.n; i += element_step())
      update(rule, a, i, static_cast<const T*>(a.gradient)[i]);
  }
};

// The same for the places that rows are for, each with the sum of its rows in their order. New
// values have been made of the old ones.
template <class Rule, class T>
struct UpdateRows {
  using Args = UpdateRowsArgs;
  __device__ static void run(const Args& a) {
    const auto rule = begin_update<Rule, T>(a.update);
    for (std::int64_t o = first_element(); o < a.groups_count * a.inner; o += element_step()) {
      const std::int64_t column = o % a.inner;
      const Group g = Group::of(a.groups, a.groups_count, o / a.inner);
      const T* rows = static_cast<const T*>(a.update.gradient) + column;
      T sum = rows[*g.begin * a.inner];
      for (const std::int64_t* i = g.begin + 1; i != g.end; ++i) sum += rows[*i * a.inner];
      update(rule, a.update, g.place * a.inner + column, sum);
    }
  }
};

// Lamb: first the moments, and the squares of the variable and of its move, block by block.
template <class T>
struct LambMoments {
  using Args = LambArgs;
  __device__ static void run(const Args& a) {
    using Sum = formula::SumOf;
    const auto rule = begin_update<formula::LambStep<T>, T>(a.update);
    double squares = 0, moves = 0;
    for (std::int64_t i = first_element(); i < a.update.n; i += element_step()) {
      const T x = static_cast<const T*>(a.update.old_values[0])[i];
      T m = static_cast<const T*>(a.update.old_values[1])[i];
      T v = static_cast<const T*>(a.update.old_values[2])[i];
      rule.moments(m, v, static_cast<const T*>(a.update.gradient)[i]);
      static_cast<T*>(a.update.new_values[1])[i] = m;
      static_cast<T*>(a.update.new_values[2])[i] = v;
      const T move = rule.move(x, m, v);
      squares += double(x) * double(x);
      moves += double(move) * double(move);
    }
    squares = block_all<Sum>(squares);
    moves = block_all<Sum>(moves);
    if (threadIdx.x != 0) return;
    double* sums = static_cast<double*>(a.sums) + 2 * blockIdx.x;
    sums[0] = squares, sums[1] = moves;
  }
};
// Then the rate, by one block.
template <class T>
struct LambRate {
  using Args = LambArgs;
  __device__ static void run(const Args& a) {
    using Sum = formula::SumOf;
    const T* scalars[kMostScalars];
    for (int i = 0; i < kMostScalars; ++i) scalars[i] = static_cast<const T*>(a.update.scalars[i]);
    double* sums = static_cast<double*>(a.sums);
    double squares = 0, moves = 0;
    for (std::int64_t i = threadIdx.x; i < a.blocks; i += blockDim.x)
      squares += sums[2 * i], moves += sums[2 * i + 1];
    squares = block_all<Sum>(squares);
    moves = block_all<Sum>(moves);
    if (threadIdx.x == 0)
      sums[2 * a.blocks] = double(formula::LambStep<T>::rate(*scalars[0], squares, moves));
  }
};
// And the variable.
template <class T>
struct LambMove {
  using Args = LambArgs;
  __device__ static void run(const Args& a) {
    const T* scalars[kMostScalars];
    for (int i = 0; i < kMostScalars; ++i) scalars[i] = static_cast<const T*>(a.update.scalars[i]);
    const auto rule =
        formula::LambStep<T>::of(scalars, *static_cast<const std::int64_t*>(a.update.new_step));
    const T rate = T(static_cast<const double*>(a.sums)[2 * a.blocks]);
    for (std::int64_t i = first_element(); i < a.update.n; i += element_step()) {
      const T x = static_cast<const T*>(a.update.old_values[0])[i];
      static_cast<T*>(a.update.new_values[0])[i] =
          x - rate * rule.move(x, static_cast<const T*>(a.update.new_values[1])[i],
                               static_cast<const T*>(a.update.new_values[2])[i]);
    }
  }
};

}  // namespace troupe::device
