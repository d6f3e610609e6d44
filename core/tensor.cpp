#include "core/tensor.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <memory>

#include "core/list.hpp"

namespace troupe {
namespace {

std::string* strings(void* data) { return static_cast<std::string*>(data); }

void destroy_strings(void* data, std::size_t bytes) {
  std::destroy_n(strings(data), bytes / sizeof(std::string));
}

std::string shown(std::string_view text) {
  constexpr std::size_t kMost = 40;
  std::string out = "\"";
  for (char c : text.substr(0, kMost)) {
    if (c == '"' || c == '\\')
      (out += '\\') += c;
    else if (static_cast<unsigned char>(c) < 0x20 || static_cast<unsigned char>(c) >= 0x7f)
      out += fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
    else
      out += c;
  }
  return out + (text.size() > kMost ? "...\"" : "\"");
}

std::string typed_shape(const Tensor& t) {
  return t.defined() ? std::string(dtype_name(t.dtype())) + t.shape().text() : "nothing";
}

template <class T>
std::string complex_text(const T& z) {
  return fmt::format("{}{:+}i", z.real(), z.imag());
}

std::string element_text(const Tensor& t, std::int64_t i) {
  switch (t.dtype()) {
    case DType::f32:
      return fmt::format("{}", t.data<float>()[i]);
    case DType::f64:
      return fmt::format("{}", t.data<double>()[i]);
    case DType::f16:
      return fmt::format("{}", float(t.data<half>()[i]));
    case DType::bf16:
      return fmt::format("{}", float(t.data<bfloat16>()[i]));
    case DType::i8:
      return std::to_string(t.data<std::int8_t>()[i]);
    case DType::i16:
      return std::to_string(t.data<std::int16_t>()[i]);
    case DType::i32:
      return std::to_string(t.data<std::int32_t>()[i]);
    case DType::i64:
      return std::to_string(t.data<std::int64_t>()[i]);
    case DType::u8:
      return std::to_string(t.data<std::uint8_t>()[i]);
    case DType::u16:
      return std::to_string(t.data<std::uint16_t>()[i]);
    case DType::u32:
      return std::to_string(t.data<std::uint32_t>()[i]);
    case DType::u64:
      return std::to_string(t.data<std::uint64_t>()[i]);
    // Read as a byte: a bool that came from a file or a peer may hold more than 0 and 1.
    case DType::bool_:
      return static_cast<const std::uint8_t*>(t.raw())[i] ? "true" : "false";
    case DType::c64:
      return complex_text(t.data<std::complex<float>>()[i]);
    case DType::c128:
      return complex_text(t.data<std::complex<double>>()[i]);
    case DType::string:
      return shown(t.data<std::string>()[i]);
    case DType::list: {
      const std::int64_t n = list_in(t).size();
      return fmt::format("{} element{}", n, n == 1 ? "" : "s");
    }
    case DType::invalid:
    case DType::resource:
      break;
  }
  return "?";
}

}  // namespace

void Tensor::wrong_type(DType wanted, const char* file, int line) const {
  throw Error(invalid_argument(fmt::format("elements of {} were asked for as {}",
                                           typed_shape(*this), dtype_name(wanted)))
                  .at(Site::here(file, line)));
}

void Tensor::no_item(DType wanted, const char* file, int line) const {
  throw Error(invalid_argument(fmt::format("one {} was asked for, and the tensor is {}",
                                           dtype_name(wanted), typed_shape(*this)))
                  .at(Site::here(file, line)));
}

Tensor Tensor::to_fill(DType dtype, const Shape& shape, std::size_t values, const char* file,
                       int line) {
  const auto fits = byte_size(shape, 1);  // elements() may be too many to count
  if (!fits.ok()) throw Error(fits.status().at(Site::here(file, line)));
  if (std::int64_t(values) != shape.elements())
    throw Error(invalid_argument(fmt::format("{} values do not fill shape {}, which has {}", values,
                                             shape.text(), shape.elements()))
                    .at(Site::here(file, line)));
  auto made = make(dtype, shape);
  if (!made.ok()) throw Error(made.status().at(Site::here(file, line)));
  return std::move(made).value();
}

Expected<Tensor> Tensor::make(DType dtype, const Shape& shape, Allocator& allocator) {
  if (dtype_size(dtype) == 0)
    return invalid_argument("a tensor of type " + std::string(dtype_name(dtype)) +
                            " has no elements");
  const bool text = dtype == DType::string;
  if (text && allocator.space() != MemorySpace::host)
    return invalid_argument("string tensors live in host memory only");
  TROUPE_TRY(auto bytes, byte_size(shape, dtype_size(dtype)));
  TROUPE_TRY(auto buffer, Buffer::allocate(allocator, std::size_t(bytes)));
  if (text) {
    std::uninitialized_value_construct_n(strings(buffer.data()), shape.elements());
    buffer.on_destroy(destroy_strings);
  }
  return Tensor(dtype, shape, std::move(buffer));
}

Expected<Tensor> Tensor::zeros(DType dtype, const Shape& shape, Allocator& allocator) {
  if (allocator.space() != MemorySpace::host)
    return failed_precondition("zeros() fills host memory; on a device a kernel does it");
  TROUPE_TRY(auto t, make(dtype, shape, allocator));
  if (dtype != DType::string && t.bytes() != 0) std::memset(t.mutable_raw(), 0, t.bytes());
  return t;
}

Tensor Tensor::scalar(std::string_view value) { return scalar<std::string>(std::string(value)); }

Tensor Tensor::reshaped(const Shape& shape) const {
  if (shape.elements() != elements())
    throw Error(invalid_argument(
        fmt::format("{} cannot be reshaped to {}", typed_shape(*this), shape.text())));
  Tensor t = *this;
  t.shape_ = shape;
  return t;
}

Tensor Tensor::retyped(DType dtype) const {
  if (dtype_size(dtype) != dtype_size(dtype_) || dtype == DType::string || dtype_ == DType::string)
    throw Error(invalid_argument(
        fmt::format("the bits of {} are no {}", typed_shape(*this), dtype_name(dtype))));
  Tensor t = *this;
  t.dtype_ = dtype;
  return t;
}

Tensor Tensor::rows(std::int64_t begin, std::int64_t end) const {
  if (rank() == 0 || begin < 0 || begin > end || end > dim(0))
    throw Error(
        out_of_range(fmt::format("{} has no rows [{}, {})", typed_shape(*this), begin, end)));
  Tensor t = *this;
  t.shape_.set_dim(0, end - begin);
  t.offset_ += std::size_t(begin * shape_.elements(1, rank())) * dtype_size(dtype_);
  return t;
}

Expected<Tensor> Tensor::clone(Allocator& allocator) const {
  if (!defined()) return Tensor();
  if (space() != MemorySpace::host || allocator.space() != MemorySpace::host)
    return failed_precondition("clone() copies host memory; a device copies through its stream");
  if (dtype_ == DType::list) return list_tensor(list_in(*this));
  TROUPE_TRY(auto t, make(dtype_, shape_, allocator));
  if (dtype_ == DType::string)
    std::copy_n(data<std::string>(), elements(), t.mutable_data<std::string>());
  else if (bytes() != 0)
    std::memcpy(t.mutable_raw(), raw(), bytes());
  return t;
}

std::string Tensor::text(int limit) const {
  if (!defined()) return "undefined";
  std::string out = std::string(dtype_name(dtype_)) + shape_.text();
  if (space() != MemorySpace::host) return out + " on a device";
  out += " {";
  std::int64_t n = elements();
  for (std::int64_t i = 0; i < n; ++i) {
    if (i) out += ", ";
    if (i == limit) {
      out += "...";
      break;
    }
    out += element_text(*this, i);
  }
  return out + "}";
}

bool Tensor::same(const Tensor& a, const Tensor& b) {
  if (a.dtype_ != b.dtype_ || a.shape_ != b.shape_) return false;
  if (!a.defined() || (a.buffer_ == b.buffer_ && a.offset_ == b.offset_)) return true;
  TROUPE_CHECK(a.space() == MemorySpace::host && b.space() == MemorySpace::host,
               "same() reads host memory only");
  if (a.dtype_ == DType::list) return List::same(list_in(a), list_in(b));
  if (a.dtype_ == DType::string)
    return std::equal(a.span<std::string>().begin(), a.span<std::string>().end(),
                      b.data<std::string>());
  return a.bytes() == 0 || std::memcmp(a.raw(), b.raw(), a.bytes()) == 0;
}

namespace {

// By bits: what the compiler takes floats for does not matter.
template <class Word>
bool any_nan(const void* data, std::size_t words, Word exponent) {
  const Word* at = static_cast<const Word*>(data);
  const Word magnitude = Word(Word(~Word{0}) >> 1);
  return std::any_of(at, at + words, [=](Word w) { return Word(w & magnitude) > exponent; });
}

}  // namespace

bool Tensor::has_nan() const {
  switch (dtype()) {
    case DType::f32:
    case DType::c64:
      return any_nan<std::uint32_t>(raw(), bytes() / 4, 0x7f800000u);
    case DType::f64:
    case DType::c128:
      return any_nan<std::uint64_t>(raw(), bytes() / 8, std::uint64_t{0x7ff} << 52);
    case DType::f16:
      return any_nan<std::uint16_t>(raw(), bytes() / 2, std::uint16_t{0x7c00});
    case DType::bf16:
      return any_nan<std::uint16_t>(raw(), bytes() / 2, std::uint16_t{0x7f80});
    default:
      return false;
  }
}

}  // namespace troupe
