#include <bit>
#include <cstring>

#include "serialization/wire.hpp"

namespace troupe {
namespace {

static_assert(std::endian::native == std::endian::little, "numbers are copied as they are");

constexpr std::size_t kFixed = 40;
constexpr std::size_t kMaxIterations = 8;
static_assert(kFixed + 8 * (kMaxIterations + kMaxRank) <= kMaxTensorTag);

// The part of fixed size, in the layout of the encoding.
struct Fixed {
  std::uint8_t version, kind, dtype, dead, rank, iterations;
  std::uint16_t zero;
  std::uint32_t partition, index;
  std::uint64_t compiled, view, attempt;
};
static_assert(sizeof(Fixed) == kFixed && std::has_unique_object_representations_v<Fixed>);

Status check(const Fixed& f, std::size_t size) {
  if (f.version != 1) return invalid_argument("tensor tag of unknown version");
  if (f.kind > std::uint8_t(TensorTag::Kind::fetch))
    return invalid_argument("tensor tag of unknown kind");
  if (f.dead > 1 || f.zero != 0) return invalid_argument("tensor tag with unknown flags");
  bool none = DType(f.dtype) == DType::invalid;
  if (none ? !f.dead : !valid_dtype(f.dtype) || DType(f.dtype) == DType::resource)
    return invalid_argument("tensor tag with dtype " + std::to_string(f.dtype));
  if (f.rank > kMaxRank || f.iterations > kMaxIterations)
    return invalid_argument("tensor tag with too many dimensions or iteration numbers");
  if (size != kFixed + 8 * (std::size_t(f.rank) + f.iterations))
    return invalid_argument("tensor tag of the wrong size");
  return ok_status();
}

}  // namespace

std::size_t encode_tag(const TensorTag& tag, std::span<std::byte, kMaxTensorTag> out) {
  TROUPE_CHECK(tag.iterations.size() <= kMaxIterations, "at most 8 frames are nested");
  Fixed f{1,
          std::uint8_t(tag.kind),
          std::uint8_t(tag.dtype),
          std::uint8_t(tag.dead),
          std::uint8_t(tag.shape.rank()),
          std::uint8_t(tag.iterations.size()),
          0,
          tag.partition,
          tag.index,
          tag.compiled,
          tag.attempt.view,
          tag.attempt.a};
  std::size_t at = 0;
  auto put = [&](const void* data, std::size_t size) {
    if (size > 0) std::memcpy(out.data() + at, data, size);
    at += size;
  };
  put(&f, kFixed);
  put(tag.shape.dims().data(), tag.shape.dims().size_bytes());
  put(tag.iterations.data(), 8 * tag.iterations.size());
  return at;
}

Expected<TensorTag> decode_tag(std::span<const std::byte> bytes) {
  Fixed f;
  if (bytes.size() < kFixed) return invalid_argument("tensor tag of the wrong size");
  std::memcpy(&f, bytes.data(), kFixed);
  TROUPE_TRY(check(f, bytes.size()));
  std::int64_t numbers[kMaxRank + kMaxIterations];
  std::memcpy(numbers, bytes.data() + kFixed, bytes.size() - kFixed);
  TensorTag tag;
  TROUPE_TRY(tag.shape, Shape::make(std::span(numbers, f.rank)));
  tag.iterations.assign(numbers + f.rank, numbers + f.rank + f.iterations);
  tag.kind = TensorTag::Kind(f.kind);
  tag.dtype = DType(f.dtype);
  tag.dead = f.dead == 1;
  tag.partition = f.partition;
  tag.index = f.index;
  tag.compiled = f.compiled;
  tag.attempt = {f.view, f.attempt};
  return tag;
}

}  // namespace troupe
