// What a shape function sees, and inference over one node.
#pragma once

#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "troupe/core/status.hpp"
#include "troupe/graph/op_def.hpp"
#include "troupe/graph/op_registry.hpp"

namespace troupe {

// One node's inputs as far as they are known, and the place for its output shapes. Lives for one
// call of a ShapeFn. Shapes of outputs not set stay unknown.
class InferenceContext {
 public:
  struct Input {
    DType dtype = DType::invalid;
    PartialShape shape;
    const Tensor* value = nullptr;  // host value when it is a constant
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
  // Known integers of a 0-d or 1-d i32 or i64 input; nullopt when unknown.
  std::optional<std::vector<std::int64_t>> ints(int i) const;

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

 private:
  const OpInfo& op_;
  const AttrMap& attrs_;
  std::span<const Input> inputs_;
  std::vector<PartialShape> shapes_;
};

// Shape functions that many ops share.
Status same_shape(InferenceContext& c);       // every output has the shape of input 0
Status scalar_shape(InferenceContext& c);     // every output is a scalar
Status broadcast_shape(InferenceContext& c);  // output 0 is the broadcast of inputs 0 and 1
Status no_outputs(InferenceContext& c);
Status unknown_shape(InferenceContext& c);  // nothing is known before the run

}  // namespace troupe
