// `tensors DTYPE SHAPE...`: tensors of the node, one per component, with examples along dimension
// 0. The node has their elements as bytes, each string after its length in 8 bytes.
#include "ops/data/sources/tensors.hpp"

#include <algorithm>
#include <cstring>

#include "ops/data/stage_kind.hpp"

namespace troupe {

std::string tensor_bytes(const Tensor& tensor) {
  if (tensor.dtype() != DType::string)
    return {static_cast<const char*>(tensor.raw()), tensor.bytes()};
  std::string out;
  for (const std::string& text : tensor.span<std::string>()) {
    const std::uint64_t size = text.size();
    out.append(reinterpret_cast<const char*>(&size), sizeof size);
    out += text;
  }
  return out;
}

namespace {

Status wrong_size(DType dtype, const Shape& shape, std::size_t bytes) {
  return invalid_argument(std::string(dtype_name(dtype)) + shape.text() + " in " +
                          std::to_string(bytes) + " bytes");
}

}  // namespace

Expected<Tensor> tensor_of(DType dtype, const Shape& shape, std::string_view bytes) {
  // Before memory is taken for what is only claimed.
  const std::uint64_t each = dtype == DType::string ? sizeof(std::uint64_t) : dtype_size(dtype);
  if (std::uint64_t(shape.elements()) > bytes.size() / each)
    return wrong_size(dtype, shape, bytes.size());
  TROUPE_TRY(Tensor tensor, Tensor::make(dtype, shape));
  if (dtype != DType::string) {
    if (tensor.bytes() != bytes.size()) return wrong_size(dtype, shape, bytes.size());
    std::copy(bytes.begin(), bytes.end(), tensor.mutable_data<char>());
    return tensor;
  }
  std::string_view left = bytes;
  for (std::int64_t i = 0; i < shape.elements(); ++i) {
    std::uint64_t size = 0;
    if (left.size() < sizeof size) return wrong_size(dtype, shape, bytes.size());
    std::memcpy(&size, left.data(), sizeof size);
    left.remove_prefix(sizeof size);
    if (left.size() < size) return wrong_size(dtype, shape, bytes.size());
    tensor.mutable_data<std::string>()[i] = left.substr(0, size);
    left.remove_prefix(size);
  }
  if (!left.empty()) return wrong_size(dtype, shape, bytes.size());
  return tensor;
}

namespace {

Signature signature_of_rows(const std::vector<Tensor>& tensors) {
  Signature signature;
  for (const Tensor& t : tensors)
    signature.push_back({t.dtype(), Shape(t.shape().dims().subspan(1))});
  return signature;
}

class TensorsSource final : public Source {
 public:
  explicit TensorsSource(std::vector<Tensor> tensors)
      : Source(signature_of_rows(tensors)), tensors_(std::move(tensors)) {}
  std::optional<std::uint64_t> count() const override { return std::uint64_t(tensors_[0].dim(0)); }
  Status read(std::uint64_t first, std::int64_t n, std::span<Tensor> out,
              std::int64_t row) const override {
    for (std::size_t c = 0; c < tensors_.size(); ++c) {
      const std::int64_t size = tensors_[c].shape().elements(1, tensors_[c].rank());
      if (tensors_[c].dtype() == DType::string) {
        std::copy_n(tensors_[c].data<std::string>() + std::int64_t(first) * size, n * size,
                    out[c].mutable_data<std::string>() + row * size);
        continue;
      }
      const std::int64_t bytes = size * std::int64_t(dtype_size(tensors_[c].dtype()));
      std::copy_n(tensors_[c].data<char>() + std::int64_t(first) * bytes, n * bytes,
                  out[c].mutable_data<char>() + row * bytes);
    }
    return ok_status();
  }

 private:
  std::vector<Tensor> tensors_;
};

// What the tensors are; all have as many examples.
Expected<std::vector<std::pair<DType, Shape>>> tensor_types(const StageText& stage) {
  if (stage.arguments.empty())
    return invalid_argument("tensors: the list is empty, and elements have a component of each");
  TROUPE_TRY(stage.takes(2, 128));
  std::vector<std::pair<DType, Shape>> types;
  for (std::size_t i = 0; i + 1 < stage.arguments.size(); i += 2) {
    TROUPE_TRY(const DType dtype, stage.dtype(i));
    TROUPE_TRY(const PartialShape shape, stage.shape(i + 1));
    if (!shape.fully_known() || shape.rank() == 0)
      return invalid_argument("a component needs its examples in dimension 0");
    TROUPE_TRY(const Shape whole, Shape::make(shape.dims()));
    types.emplace_back(dtype, whole);
    const Shape &first = types[0].second, &last = types.back().second;
    if (last.dim(0) != first.dim(0))
      return invalid_argument("components differ in length: " + first.text() + " and " +
                              last.text());
  }
  if (stage.arguments.size() % 2 != 0)
    return invalid_argument("stage '" + stage.text() + "' has a dtype without a shape");
  return types;
}

Expected<Signature> signature_of_tensors(const StageText& stage, const std::vector<Signature>&) {
  TROUPE_TRY(const auto types, tensor_types(stage));
  Signature all;
  for (const auto& [dtype, shape] : types) all.push_back({dtype, Shape(shape.dims().subspan(1))});
  return all;
}

Expected<StagePtr> open_tensors(const StageText& stage, Signature, Stages, StageOpening& opening) {
  TROUPE_TRY(const auto types, tensor_types(stage));
  std::vector<Tensor> tensors;
  for (const auto& [dtype, shape] : types) {
    TROUPE_TRY(const std::string_view bytes, opening.next_tensor());
    TROUPE_TRY(Tensor tensor, tensor_of(dtype, shape, bytes));
    tensors.push_back(std::move(tensor));
  }
  return source_stage(std::make_unique<TensorsSource>(std::move(tensors)));
}

}  // namespace

StageKind tensors_source() { return {"tensors", 0, signature_of_tensors, open_tensors}; }

}  // namespace troupe
