// Rows by number: taken, and added up by the place that they belong to.
#pragma once

#include "ops/device/arguments.hpp"
#include "ops/device/types.cuh"

namespace troupe::device {

// y[outer, i, inner] = x[outer, indices[i], inner], of elements that are moved. The host has
// checked the indices.
template <class T, class Index>
struct TakeRows {
  using Args = TakeRowsArgs;
  __device__ static void run(const Args& a) {
    const Index* at = static_cast<const Index*>(a.indices);
    for (std::int64_t o = first_element(); o < a.outer * a.n * a.inner; o += element_step()) {
      const std::int64_t inner = o % a.inner, i = o / a.inner % a.n, outer = o / a.inner / a.n;
      static_cast<T*>(a.y)[o] =
          static_cast<const T*>(a.x)[(outer * a.size + std::int64_t(at[i])) * a.inner + inner];
    }
  }
};

// The numbers of the rows that belong to one place after the other (FoldRowsArgs).
struct Group {
  const std::int64_t *begin, *end;
  std::int64_t place;
  __device__ static Group of(const void* groups, std::int64_t count, std::int64_t group) {
    const std::int64_t* places = static_cast<const std::int64_t*>(groups);
    const std::int64_t *begins = places + count, *order = begins + count + 1;
    return {order + begins[group], order + begins[group + 1], places[group]};
  }
};

// Fold::run(what y has, the group, row number -> element) for each place, and each column. Rows are
// joined in their order.
template <class Fold, class T>
struct FoldRows {
  using Args = FoldRowsArgs;
  using C = Compute<T>;
  __device__ static void run(const Args& a) {
    for (std::int64_t o = first_element(); o < a.outer * a.groups_count * a.inner;
         o += element_step()) {
      const std::int64_t inner = o % a.inner, outer = o / a.inner / a.groups_count;
      const Group g = Group::of(a.groups, a.groups_count, o / a.inner % a.groups_count);
      const T* x = static_cast<const T*>(a.x) + outer * a.n * a.inner + inner;
      T& y = static_cast<T*>(a.y)[(outer * a.size + g.place) * a.inner + inner];
      C begun;
      if constexpr (Fold::kReads)
        begun = load(y);
      else
        begun = std::is_integral_v<C> ? C(a.no_integer) : C(a.nothing);
      y = Store<T>::of(
          Fold::run(begun, g, [=](std::int64_t row) { return load(x[row * a.inner]); }));
    }
  }
};

// What y has, and all rows.
struct AddRows {
  static constexpr bool kReads = true;
  template <class C, class Row>
  __device__ static C run(C sum, const Group& g, Row row) {
    for (const std::int64_t* i = g.begin; i != g.end; ++i) sum = C(sum + row(*i));
    return sum;
  }
};
struct SubtractRows {
  static constexpr bool kReads = true;
  template <class C, class Row>
  __device__ static C run(C left, const Group& g, Row row) {
    for (const std::int64_t* i = g.begin; i != g.end; ++i) left = C(left - row(*i));
    return left;
  }
};
struct LastRow {
  static constexpr bool kReads = false;
  template <class C, class Row>
  __device__ static C run(C, const Group& g, Row row) {
    return row(g.end[-1]);
  }
};
// All rows by Op, a formula of ops/formulas/reduction.hpp; a sum of -0 alone is 0.
template <class Op>
struct JoinRows {
  static constexpr bool kReads = false;
  template <class C, class Row>
  __device__ static C run(C nothing, const Group& g, Row row) {
    if (g.begin == g.end) return nothing;
    C all = row(*g.begin);
    if (Op::template start<C>() == C(0)) all = C(all + C(0));
    for (const std::int64_t* i = g.begin + 1; i != g.end; ++i) all = Op{}(all, row(*i));
    if constexpr (requires { Op::finish(all, std::int64_t(1)); })
      return Op::finish(all, g.end - g.begin);
    else
      return all;
  }
};

}  // namespace troupe::device
