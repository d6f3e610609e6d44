#include "serialization/strings.hpp"

#include <bit>
#include <cstring>
#include <new>
#include <string>

namespace troupe {
namespace {

static_assert(std::endian::native == std::endian::little, "lengths are copied as they are");

constexpr std::size_t kLength = sizeof(std::uint64_t);

std::uint64_t length_at(std::span<const std::byte> bytes, std::size_t i) {
  std::uint64_t length;
  std::memcpy(&length, bytes.data() + i * kLength, kLength);
  return length;
}

}  // namespace

std::uint64_t encoded_strings_size(const Tensor& strings) {
  TROUPE_CHECK(strings.dtype() == DType::string, "only strings have lengths");
  std::uint64_t size = kLength * std::uint64_t(strings.elements());
  for (const std::string& s : strings.span<std::string>()) size += s.size();
  return size;
}

Expected<Buffer> encode_strings(const Tensor& strings) {
  TROUPE_TRY(Buffer buffer, Buffer::allocate(heap_allocator(), encoded_strings_size(strings)));
  auto* length = static_cast<std::byte*>(buffer.data());
  auto* content = length + kLength * std::size_t(strings.elements());
  for (const std::string& s : strings.span<std::string>()) {
    std::uint64_t size = s.size();
    std::memcpy(length, &size, kLength);
    std::memcpy(content, s.data(), s.size());
    length += kLength;
    content += s.size();
  }
  return buffer;
}

Status check_strings_size(const Shape& shape, std::uint64_t bytes) {
  TROUPE_TRY(std::int64_t lengths, byte_size(shape, kLength));
  if (bytes < std::uint64_t(lengths) || (lengths == 0 && bytes != 0))
    return invalid_argument("strings " + shape.text() + " cannot have " + std::to_string(bytes) +
                            " bytes");
  return ok_status();
}

Expected<Tensor> decode_strings(const Shape& shape, std::span<const std::byte> bytes) try {
  TROUPE_TRY(check_strings_size(shape, bytes.size()));
  std::size_t count = std::size_t(shape.elements());
  std::size_t left = bytes.size() - kLength * count;
  for (std::size_t i = 0; i < count; ++i) {
    std::uint64_t length = length_at(bytes, i);
    if (length > left)
      return invalid_argument("string " + std::to_string(i) + " goes past the end of its tensor");
    left -= length;
  }
  if (left != 0) return invalid_argument("bytes follow the last string of a tensor");
  TROUPE_TRY(Tensor strings, Tensor::make(DType::string, shape));
  auto* content = reinterpret_cast<const char*>(bytes.data()) + kLength * count;
  for (std::size_t i = 0; i < count; ++i) {
    std::uint64_t length = length_at(bytes, i);
    strings.mutable_data<std::string>()[i].assign(content, length);
    content += length;
  }
  return strings;
} catch (const std::bad_alloc&) {
  return resource_exhausted("no memory for strings of " + std::to_string(bytes.size()) + " bytes");
}

}  // namespace troupe
