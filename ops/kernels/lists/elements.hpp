// What the ops on lists share. The shape of a port of type list is that of the list's elements.
#pragma once

#include <fmt/core.h>

#include <vector>

#include "core/list.hpp"
#include "ops/kernels/support/types.hpp"
#include "ops/op.hpp"

namespace troupe {

// T of an op on lists: what an element may be.
inline constexpr const char* kElements =
    "f32 f64 f16 bf16 i8 i16 i32 i64 u8 u16 u32 u64 bool c64 c128 string list";

// Input i, a list to be changed: itself where nobody else needs it, else a list that has its
// elements.
inline Tensor changeable_list(const KernelContext& c, int i) {
  return c.may_reuse(i) ? c.input(i) : list_tensor(list_in(c.input(i)));
}

// Zeros that take no memory, for gradients of lists. Nobody but the ops on lists sees one.
inline Tensor zeros_of(const Tensor& like) { return Tensor(like.dtype(), like.shape(), Buffer()); }
// The same with memory, for whoever takes an element off.
inline Expected<Tensor> with_memory(Tensor element) {
  return element.zeros_alone() ? Tensor::zeros(element.dtype(), element.shape())
                               : std::move(element);
}

// Zeros in the form of an element; of lists in lists, as far as they go. invalid_argument for lists
// that are too deep.
Expected<Tensor> zeros_like_element(const Tensor& element, int depth = 0);
// sums[at] += element, and sums += list, in place where nobody else holds the element.
Status add_to_element(List& sums, std::int64_t at, const Tensor& element, int depth = 0);
Status add_to_list(List& sums, const List& list, int depth = 0);
// a + b, in place of `a` where nobody else holds it.
Expected<Tensor> add_elements(Tensor a, const Tensor& b, int depth = 0);
// All of one or more elements, from left to right; those of f16 and bf16 in f32, rounded once.
Expected<Tensor> add_all(std::vector<Tensor> parts, int depth = 0);
// Whether it is of f16 or bf16, or a list that has such elements.
bool holds_halves(const Tensor& element, int depth = 0);

// The element as the graph says that it is: of that type, of a shape that is accepted.
inline Expected<Tensor> checked_element(Tensor element, DType dtype, const PartialShape& shape) {
  if (!element.defined()) return invalid_argument("the entry of the list has no value");
  if (element.dtype() != dtype)
    return invalid_argument(fmt::format("the elements of the list are {}, not {}",
                                        dtype_name(element.dtype()), dtype_name(dtype)));
  if (dtype != DType::list && !shape.accepts(element.shape()))
    return invalid_argument(fmt::format("the element of the list has shape {}, not {}",
                                        element.shape().text(), shape.text()));
  return with_memory(std::move(element));
}

// What is known of the shape of elements: of the list, and what attribute `shape` says.
inline Expected<PartialShape> element_shape(InferenceContext& c) {
  return PartialShape::merge(c.shape(0), c.shape_attr("shape"));
}

// The index that is input i; out_of_range unless it is one of so many elements.
inline Expected<std::int64_t> list_index(const KernelContext& c, int i, std::int64_t elements) {
  const Tensor& at = c.input(i);
  if (at.elements() != 1)
    return invalid_argument("the index must be one number, not of shape " + at.shape().text());
  const std::int64_t index =
      at.dtype() == DType::i32 ? *at.data<std::int32_t>() : *at.data<std::int64_t>();
  if (index >= 0 && index < elements) return index;
  return out_of_range(fmt::format("index {} is outside [0, {})", index, elements));
}

// An op whose list has elements of type T, which its inputs may not tell.
struct ElementType {
  explicit ElementType(const KernelSpec& s) : dtype(s.type()), shape(s.shape_attr("shape")) {}
  // One whose output `element` is an element: of the shape that the graph counts on, too.
  ElementType(const KernelSpec& s, std::size_t element) : ElementType(s) {
    if (dtype != DType::list && element < s.node.out_shapes.size())
      if (auto both = PartialShape::merge(shape, s.node.out_shapes[element]); both.ok())
        shape = std::move(both).value();
  }
  DType dtype;
  PartialShape shape;
};

}  // namespace troupe
