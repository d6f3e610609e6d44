// A list of tensors of one type, read and written by position:
//
//   TensorArray ta(g, DType::f32, {.element = {-1, 64}});
//   auto [n, all] = while_loop(std::tuple{constant(g, 0), ta}, ...,
//                              [&](Output i, TensorArray ta) {
//                                return std::tuple{i + 1, ta.write(i, f(i))};
//                              });
//   Output y = all.stack();
#pragma once

#include "graph/builder.hpp"

namespace troupe {

struct TensorArrayOptions {
  PartialShape element = {};  // shape of every element; -1: a dimension that may differ
};

// An immutable value: write() and push() return a new TensorArray. A handle like Output: cheap to
// copy, valid as long as its graph, usable as a loop variable and as argument or result of bodies.
// Only stack() copies elements. Methods throw Error for mistakes that are visible before a run.
class TensorArray {
 public:
  // An empty array.
  TensorArray(GraphBuilder& g, DType dtype, const TensorArrayOptions& options = {},
              Site site = Site::here());
  // Wraps an Output of dtype list.
  TensorArray(Output list, DType dtype, const TensorArrayOptions& options = {});
  // The slices of `rows` along the first dimension.
  static TensorArray unstack(const Output& rows, Site site = Site::here());

  DType dtype() const { return dtype_; }
  const PartialShape& element() const { return element_; }
  operator Output() const { return list_; }

  // The element at a scalar index of type i32 or i64.
  Output read(const Output& index, Site site = Site::here()) const;
  // The array with `value` at `index`, in [0, size]; index == size appends.
  TensorArray write(const Output& index, const Output& value, Site site = Site::here()) const;
  TensorArray push(const Output& value, Site site = Site::here()) const;
  // The number of elements, a scalar i64.
  Output size(Site site = Site::here()) const;
  // All elements, which must have the same shape, along a new first dimension.
  Output stack(Site site = Site::here()) const;

 private:
  void check(const Output& value, const Site& site) const;

  Output list_;
  DType dtype_;
  PartialShape element_;
};

inline TensorArray in_form_of(const TensorArray& first, const Output& list) {
  return TensorArray(list, first.dtype(), {.element = first.element()});
}

}  // namespace troupe
