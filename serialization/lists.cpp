#include "serialization/lists.hpp"

#include <algorithm>
#include <bit>
#include <cstring>
#include <new>
#include <string>
#include <type_traits>

#include "core/list.hpp"
#include "serialization/strings.hpp"

namespace troupe {
namespace {

static_assert(std::endian::native == std::endian::little, "numbers are copied as they are");

enum class EntryKind : std::uint8_t { nothing, contents, zeros };

// The header of an element in the encoding.
struct ListEntry {
  EntryKind kind = EntryKind::nothing;
  std::uint8_t dtype = 0, rank = 0;
  std::uint8_t reserved[5] = {};
  std::uint64_t bytes = 0;  // of its contents
  std::int64_t dims[kMaxRank] = {};
};
static_assert(sizeof(ListEntry) == kListEntry &&
              std::has_unique_object_representations_v<ListEntry>);

std::uint64_t bytes_of_list(const Tensor& list);

// The size of an element's contents.
std::uint64_t bytes_of_element(const Tensor& t) {
  if (!t.defined() || t.zeros_alone()) return 0;
  if (t.dtype() == DType::list) return bytes_of_list(t);
  return t.dtype() == DType::string ? encoded_strings_size(t) : t.bytes();
}

std::uint64_t bytes_of_list(const Tensor& list) {
  std::uint64_t sum = 0;
  list_in(list).for_each(
      [&](const Tensor& element) { sum += kListEntry + bytes_of_element(element); });
  return sum;
}

class ListWriter {
 public:
  explicit ListWriter(std::byte* to) : to_(to) {}

  Status list(const Tensor& list) {
    Status status;
    list_in(list).for_each([&](const Tensor& element) {
      if (status.ok()) status = this->element(element);
    });
    return status;
  }

 private:
  Status element(const Tensor& t) {
    ListEntry entry;
    if (t.defined()) {
      entry.kind = t.zeros_alone() ? EntryKind::zeros : EntryKind::contents;
      entry.dtype = std::uint8_t(t.dtype());
      entry.rank = std::uint8_t(t.rank());
      std::copy(t.shape().dims().begin(), t.shape().dims().end(), entry.dims);
      entry.bytes = bytes_of_element(t);
    }
    TROUPE_TRY(put(&entry, sizeof entry));
    if (entry.kind != EntryKind::contents) return ok_status();
    if (t.dtype() == DType::list) return list(t);
    if (t.dtype() != DType::string) return put(t.raw(), t.bytes());
    TROUPE_TRY(const Buffer strings, encode_strings(t));
    return put(strings.data(), entry.bytes);
  }

  Status put(const void* from, std::size_t size) {
    if (size > 0) std::memcpy(to_, from, size);
    to_ += size;
    return ok_status();
  }

  std::byte* to_;
};

Status wrong_list(const std::string& why) {
  return invalid_argument("a list that arrived: " + why);
}

Expected<Tensor> contents_of_element(DType dtype, const Shape& shape,
                                     std::span<const std::byte> bytes) {
  if (dtype == DType::string) return decode_strings(shape, bytes);
  TROUPE_TRY(const std::int64_t size, byte_size(shape, dtype_size(dtype)));
  if (bytes.size() != std::uint64_t(size))
    return wrong_list("an element " + std::string(dtype_name(dtype)) + shape.text() + " has " +
                      std::to_string(bytes.size()) + " bytes");
  if (dtype == DType::bool_ &&
      std::any_of(bytes.begin(), bytes.end(), [](std::byte b) { return b > std::byte{1}; }))
    return wrong_list("a bool is neither 0 nor 1");
  TROUPE_TRY(Tensor t, Tensor::make(dtype, shape));
  if (!bytes.empty()) std::memcpy(t.mutable_raw(), bytes.data(), bytes.size());
  return t;
}

Expected<Tensor> list_of(std::span<const std::byte> bytes, int depth);

Expected<Tensor> element_of(const ListEntry& entry, std::span<const std::byte> bytes, int depth) {
  if (std::any_of(entry.reserved, entry.reserved + sizeof entry.reserved,
                  [](std::uint8_t b) { return b != 0; }))
    return wrong_list("an entry has unknown flags");
  const auto dtype = DType(entry.dtype);
  if (entry.kind == EntryKind::nothing) {
    if (entry.dtype != 0 || entry.rank != 0 || !bytes.empty())
      return wrong_list("an entry without a value has one");
    return Tensor();
  }
  if (entry.kind > EntryKind::zeros) return wrong_list("an entry is of unknown kind");
  if (!valid_dtype(entry.dtype) || dtype == DType::resource || dtype == DType::invalid)
    return wrong_list("an element has dtype " + std::to_string(entry.dtype));
  if (entry.rank > kMaxRank) return wrong_list("an element has too many dimensions");
  TROUPE_TRY(const Shape shape, Shape::make(std::span(entry.dims, entry.rank)));
  if (entry.kind == EntryKind::zeros) {
    TROUPE_TRY(const std::int64_t size, byte_size(shape, dtype_size(dtype)));
    if (!bytes.empty() || size == 0 || dtype == DType::list || dtype == DType::string)
      return wrong_list("zeros that take memory");
    return Tensor(dtype, shape, Buffer());
  }
  if (dtype != DType::list) return contents_of_element(dtype, shape, bytes);
  if (entry.rank != 0) return wrong_list("a list in it is no scalar");
  return list_of(bytes, depth + 1);
}

Expected<Tensor> list_of(std::span<const std::byte> bytes, int depth) {
  if (depth == kDeepestSent) return wrong_list("lists in it are too deep");
  List list;
  while (!bytes.empty()) {
    ListEntry entry;
    if (bytes.size() < sizeof entry) return wrong_list("it ends within an entry");
    std::memcpy(&entry, bytes.data(), sizeof entry);
    bytes = bytes.subspan(sizeof entry);
    if (entry.bytes > bytes.size()) return wrong_list("an element goes past its end");
    TROUPE_TRY(Tensor element, element_of(entry, bytes.first(entry.bytes), depth));
    list.push(std::move(element));
    bytes = bytes.subspan(entry.bytes);
  }
  return list_tensor(std::move(list));
}

}  // namespace

Expected<Buffer> encode_list(const Tensor& list) {
  TROUPE_TRY(check_sent_depth(list));
  TROUPE_TRY(Buffer buffer, Buffer::allocate(heap_allocator(), bytes_of_list(list)));
  TROUPE_TRY(ListWriter(static_cast<std::byte*>(buffer.data())).list(list));
  return buffer;
}

Expected<Tensor> decode_list(std::span<const std::byte> bytes) try {
  return list_of(bytes, 0);
} catch (const std::bad_alloc&) {
  return resource_exhausted("no memory for a list of " + std::to_string(bytes.size()) + " bytes");
}

}  // namespace troupe
