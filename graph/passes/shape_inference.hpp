// The interface of shape functions.
#pragma once

#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "core/status.hpp"
#include "graph/op_def.hpp"
#include "graph/op_registry.hpp"

namespace troupe {

// The elements of an i32 or i64 tensor of rank 0 or 1 that are known before a run. With these, a
// shape computed from shapes keeps its known dimensions.
struct KnownInts {
  using Element = std::optional<std::int64_t>;
  bool scalar = false;            // rank 0: one element
  std::vector<Element> elements;  // at most kMostKnownInts

  bool complete() const;
  std::int64_t size() const { return std::int64_t(elements.size()); }
  PartialShape shape() const { return scalar ? PartialShape::scalar() : PartialShape{size()}; }
};
// Enough for any shape; small, because every node may have some.
inline constexpr std::size_t kMostKnownInts = 2 * kMaxRank;

// What is known about an output before any run: its value, or some elements of a list of integers.
struct KnownValue {
  std::optional<Tensor> value;
  std::optional<KnownInts> ints;
};

// One node's inputs, as far as they are known, and its output shapes. Lives for one call of a
// ShapeFn. Output shapes that are not set stay unknown.
class InferenceContext {
 public:
  struct Input {
    DType dtype = DType::invalid;
    PartialShape shape;
    const Tensor* value = nullptr;    // host value of a constant
    const KnownInts* ints = nullptr;  // known integers, perhaps only some elements
  };
  InferenceContext(const OpInfo& op, const AttrMap& attrs, std::span<const Input> inputs,
                   std::size_t outputs)
      : op_(op), attrs_(attrs), inputs_(inputs), shapes_(outputs) {}

  const OpInfo& op() const { return op_; }
  // For attributes without an accessor (lists).
  const AttrMap& attrs() const { return attrs_; }
  int inputs() const { return int(inputs_.size()); }
  int outputs() const { return int(shapes_.size()); }
  DType dtype(int i) const { return inputs_[std::size_t(i)].dtype; }
  const PartialShape& shape(int i) const { return inputs_[std::size_t(i)].shape; }
  // The value of input i if it is known before the run, else nullptr.
  const Tensor* value(int i) const { return inputs_[std::size_t(i)].value; }
  // The known elements of an i32 or i64 input of rank 0 or 1, else nullptr.
  const KnownInts* known_ints(int i) const { return inputs_[std::size_t(i)].ints; }
  // The same if every element is known, else nullopt.
  std::optional<std::vector<std::int64_t>> ints(int i) const;
  // The shape whose dimensions input i lists; unknown elements are unknown dimensions, an unknown
  // number is an unknown rank. invalid_argument if it cannot be a shape.
  Expected<PartialShape> listed_shape(int i) const;

  // REQUIRES: the op declares the attribute with this kind.
  std::int64_t int_attr(std::string_view name) const;
  double float_attr(std::string_view name) const;
  bool bool_attr(std::string_view name) const;
  const std::string& string_attr(std::string_view name) const;
  DType type_attr(std::string_view name) const;
  const PartialShape& shape_attr(std::string_view name) const;
  const Tensor& tensor_attr(std::string_view name) const;
  const std::vector<std::int64_t>& ints_attr(std::string_view name) const;

  // invalid_argument "x must have rank 2, not [3,4,5]" if the rank is known and differs.
  Status want_rank(int i, int rank) const;
  Status want_rank_at_least(int i, int rank) const;
  // The axis counted from the front; invalid_argument outside [-rank, rank).
  Expected<int> axis(std::int64_t axis, int rank) const;

  void set(int i, PartialShape shape) { shapes_[std::size_t(i)] = std::move(shape); }
  const std::vector<PartialShape>& result() const { return shapes_; }
  // For a ValueFn. Elements that do not fit into an i32 output become unknown.
  void set_ints(int i, KnownInts ints) {
    ints_.resize(shapes_.size());
    ints_[std::size_t(i)] = std::move(ints);
  }
  // By output; empty if nothing was set.
  std::vector<std::optional<KnownInts>>& known_outputs() { return ints_; }

 private:
  const OpInfo& op_;
  const AttrMap& attrs_;
  std::span<const Input> inputs_;
  std::vector<PartialShape> shapes_;
  std::vector<std::optional<KnownInts>> ints_;
};

// Shape functions shared by many ops.
Status same_shape(InferenceContext& c);       // every output has the shape of input 0
Status scalar_shape(InferenceContext& c);     // every output is a scalar
Status broadcast_shape(InferenceContext& c);  // output 0 is the broadcast of inputs 0 and 1
Status no_outputs(InferenceContext& c);
Status unknown_shape(InferenceContext& c);  // nothing is known before the run

// Value functions shared by many ops.
void same_ints(InferenceContext& c);   // every output is input 0, as a vector or a scalar
void shape_ints(InferenceContext& c);  // output 0 is the shape of input 0
void rank_ints(InferenceContext& c);   // output 0 is its rank
void size_ints(InferenceContext& c);   // output 0 is its number of elements

}  // namespace troupe
