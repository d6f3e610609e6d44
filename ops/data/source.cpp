#include "ops/data/source.hpp"

#include <algorithm>

namespace troupe {

std::string signature_text(const Signature& signature) {
  std::string out;
  for (const Component& component : signature)
    out += (out.empty() ? "" : ", ") + std::string(dtype_name(component.dtype)) +
           component.shape.text();
  return out;
}

Signature signature_of(const std::vector<Tensor>& values) {
  Signature signature;
  for (const Tensor& value : values) signature.push_back({value.dtype(), value.shape()});
  return signature;
}

bool may_fit(const Signature& a, const Signature& b) {
  return std::equal(
      a.begin(), a.end(), b.begin(), b.end(), [](const Component& one, const Component& other) {
        return one.dtype == other.dtype && PartialShape::merge(one.shape, other.shape).ok();
      });
}

bool fits(const Signature& signature, const std::vector<Tensor>& values) {
  if (signature.size() != values.size()) return false;
  for (std::size_t i = 0; i < values.size(); ++i)
    if (values[i].dtype() != signature[i].dtype || !signature[i].shape.accepts(values[i].shape()))
      return false;
  return true;
}

std::string Origin::text() const {
  if (file == nullptr) return source == nullptr ? "" : source->where(record);
  return "record " + std::to_string(record) + " at byte " + std::to_string(offset) + " of file '" +
         file->name() + "'";
}

bool is_of_data(const Status& status) {
  return status.code() == Code::data_loss || status.code() == Code::invalid_argument;
}

Status Source::read(std::uint64_t, std::int64_t, std::span<Tensor>, std::int64_t) const {
  return internal_error("this source is read through cursors");
}

Expected<std::unique_ptr<Cursor>> Source::start() const {
  return internal_error("this source is read at places, not through cursors");
}

}  // namespace troupe
