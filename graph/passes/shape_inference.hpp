// What a shape function sees, and inference over one node.
#pragma once

#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "core/status.hpp"
#include "graph/op_def.hpp"
#include "graph/op_registry.hpp"

namespace troupe {

// What is known before a run of an i32 or i64 tensor of rank 0 or 1: each element, or that it is
// not known. With these a shape that is computed from shapes keeps the dimensions that are known.
struct KnownInts {
  using Element = std::optional<std::int64_t>;
  bool scalar = false;            // rank 0: one element
  std::vector<Element> elements;  // at most kMostKnownInts

  bool complete() const;
  std::int64_t size() const { return std::int64_t(elements.size()); }
  PartialShape shape() const { return scalar ? PartialShape::scalar() : PartialShape{size()}; }
};
// Longer than any shape, and short: every node of a graph may have some.
inline constexpr std::size_t kMostKnownInts = 2 * kMaxRank;

// What is known of one output before any run: all of it, or some elements of a list of integers.
struct KnownValue {
  std::optional<Tensor> value;
  std::optional<KnownInts> ints;
};

// One node's inputs as far as they are known, and the place for its output shapes. Lives for one
// call of a ShapeFn. Shapes of outputs not set stay unknown.
class InferenceContext {
 public:
  struct Input {
    DType dtype = DType::invalid;
    PartialShape shape;
    const Tensor* value = nullptr;    // host value when it is a constant
    const KnownInts* ints = nullptr;  // of integers, also when some elements are unknown
  };
  InferenceContext(const OpInfo& op, const AttrMap& attrs, std::span<const Input> inputs,
                   std::size_t outputs)
      : op_(op), attrs_(attrs), inputs_(inputs), shapes_(outputs) {}

  const OpInfo& op() const { return op_; }
  // For attributes of the list kinds, which have no accessor of their own.
  const AttrMap& attrs() const { return attrs_; }
  int inputs() const { return int(inputs_.size()); }
  int outputs() const { return int(shapes_.size()); }
  DType dtype(int i) const { return inputs_[std::size_t(i)].dtype; }
  const PartialShape& shape(int i) const { return inputs_[std::size_t(i)].shape; }
  // The value of input i when it is known before the run, else nullptr.
  const Tensor* value(int i) const { return inputs_[std::size_t(i)].value; }
  // What is known of an i32 or i64 input of rank 0 or 1, else nullptr.
  const KnownInts* known_ints(int i) const { return inputs_[std::size_t(i)].ints; }
  // The same when every element is known; nullopt otherwise.
  std::optional<std::vector<std::int64_t>> ints(int i) const;
  // The shape whose dimensions input i lists, unknown where an element is; of unknown rank when not
  // even their number is known. invalid_argument when it cannot be a shape.
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

  // invalid_argument "x must have rank 2, not [3,4,5]" when the rank is known and differs.
  Status want_rank(int i, int rank) const;
  Status want_rank_at_least(int i, int rank) const;
  // The axis counted from the front; invalid_argument when outside [-rank, rank).
  Expected<int> axis(std::int64_t axis, int rank) const;

  void set(int i, PartialShape shape) { shapes_[std::size_t(i)] = std::move(shape); }
  const std::vector<PartialShape>& result() const { return shapes_; }
  // For a ValueFn. Of an i32 output, elements that do not fit are taken for unknown.
  void set_ints(int i, KnownInts ints) {
    ints_.resize(shapes_.size());
    ints_[std::size_t(i)] = std::move(ints);
  }
  // Of each output; empty when nothing was set.
  std::vector<std::optional<KnownInts>>& known_outputs() { return ints_; }

 private:
  const OpInfo& op_;
  const AttrMap& attrs_;
  std::span<const Input> inputs_;
  std::vector<PartialShape> shapes_;
  std::vector<std::optional<KnownInts>> ints_;
};

// Shape functions that many ops share.
Status same_shape(InferenceContext& c);       // every output has the shape of input 0
Status scalar_shape(InferenceContext& c);     // every output is a scalar
Status broadcast_shape(InferenceContext& c);  // output 0 is the broadcast of inputs 0 and 1
Status no_outputs(InferenceContext& c);
Status unknown_shape(InferenceContext& c);  // nothing is known before the run

// Value functions that many ops share.
void same_ints(InferenceContext& c);   // every output is input 0, as a vector or a scalar
void shape_ints(InferenceContext& c);  // output 0 is the shape of input 0
void rank_ints(InferenceContext& c);   // output 0 is its rank
void size_ints(InferenceContext& c);   // output 0 is its number of elements

}  // namespace troupe
