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
  PartialShape element = {};  // what all elements' shapes have in common
};

// A value: what writes returns another one. Copies freely, valid as long as its graph; a variable
// of a loop, an argument and a result of bodies like any Output. Nothing in it is ever copied but
// by stack(). Its methods throw Error where they can see what a run would refuse.
class TensorArray {
 public:
  // Without elements.
  TensorArray(GraphBuilder& g, DType dtype, const TensorArrayOptions& options = {},
              Site site = Site::here());
  // The list that an output of type list is.
  TensorArray(Output list, DType dtype, const TensorArrayOptions& options = {});
  // The slices of `rows` along the first dimension.
  static TensorArray unstack(const Output& rows, Site site = Site::here());

  DType dtype() const { return dtype_; }
  const PartialShape& element() const { return element_; }
  operator Output() const { return list_; }

  // The element at a scalar index of type i32 or i64.
  Output read(const Output& index, Site site = Site::here()) const;
  // With `value` at that index, which is that of an element or how many there are.
  TensorArray write(const Output& index, const Output& value, Site site = Site::here()) const;
  TensorArray push(const Output& value, Site site = Site::here()) const;
  // How many there are, an i64 scalar.
  Output size(Site site = Site::here()) const;
  // All of them, which have one shape, along a new first dimension.
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
