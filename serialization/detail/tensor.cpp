// Tensors: shape, byte count and content are checked against each other before memory is allocated.
#include <algorithm>
#include <bit>
#include <cstring>

#include "serialization/detail/values.hpp"

namespace troupe::detail {
namespace {

static_assert(std::endian::native == std::endian::little, "contents are copied as they are");

using Bytes = capnp::Data::Reader;

// Provides memory for `total` bytes of content in parts, to be filled in order.
class ContentWriter {
 public:
  ContentWriter(schema::Tensor::Builder out, std::size_t total) : left_(total) {
    next_ = out.initData(unsigned(take()));
    if (left_ > 0) more_ = out.initMore(unsigned((left_ + kPartBytes - 1) / kPartBytes));
  }
  void put(const void* data, std::size_t size) {
    auto* from = static_cast<const kj::byte*>(data);
    while (size > 0) {
      if (next_.size() == 0) next_ = more_.init(part_++, unsigned(take()));
      std::size_t n = std::min(size, next_.size());
      std::memcpy(next_.begin(), from, n);
      next_ = next_.slice(n, next_.size());
      from += n;
      size -= n;
    }
  }

 private:
  std::size_t take() {
    std::size_t n = std::min(left_, kPartBytes);
    left_ -= n;
    return n;
  }

  std::size_t left_;
  unsigned part_ = 0;
  kj::ArrayPtr<kj::byte> next_;
  capnp::List<capnp::Data>::Builder more_;
};

// The content of an untrusted tensor.
class ContentReader {
 public:
  explicit ContentReader(schema::Tensor::Reader in) : parts_{in.getData()} {
    auto more = in.getMore();
    parts_.reserve(1 + more.size());
    for (Bytes part : more) parts_.push_back(part);
    for (Bytes part : parts_) total_ += part.size();
  }
  std::size_t total() const { return total_; }
  // REQUIRES: that many are left.
  void get(void* data, std::size_t size) {
    auto* to = static_cast<kj::byte*>(data);
    while (size > 0) {
      Bytes& part = parts_[at_];
      std::size_t n = std::min(size, part.size());
      if (n > 0) std::memcpy(to, part.begin(), n);
      part = Bytes(part.slice(n, part.size()));
      if (part.size() == 0) ++at_;
      to += n;
      size -= n;
    }
  }

 private:
  std::vector<Bytes> parts_;
  std::size_t at_ = 0, total_ = 0;
};

Status wrong_size(std::string_view what, DType dtype, const Shape& shape, std::uint64_t have) {
  return invalid_argument("tensor " + std::string(dtype_name(dtype)) + shape.text() +
                          " came with " + std::to_string(have) + " " + std::string(what));
}

Expected<Tensor> read_strings(const Shape& shape, schema::Tensor::Reader in,
                              ContentReader content) {
  auto sizes = in.getSizes();
  if (std::int64_t(sizes.size()) != shape.elements())
    return wrong_size("strings", DType::string, shape, sizes.size());
  std::size_t left = content.total();
  for (std::uint64_t size : sizes) {
    if (size > left) return invalid_argument("strings of a tensor go past the end of its content");
    left -= size;
  }
  if (left != 0) return invalid_argument("bytes follow the last string of a tensor");
  TROUPE_TRY(Tensor t, Tensor::make(DType::string, shape));
  for (unsigned i = 0; i < sizes.size(); ++i) {
    std::string& s = t.mutable_data<std::string>()[i];
    s.resize(sizes[i]);
    content.get(s.data(), s.size());
  }
  return t;
}

}  // namespace

void write(schema::Tensor::Builder out, const Tensor& t) {
  if (!t.defined()) return;
  TROUPE_CHECK(t.space() == MemorySpace::host && t.dtype() != DType::resource,
               "only host tensors are encoded");
  out.setDtype(std::uint8_t(t.dtype()));
  write_numbers(out.initDims(unsigned(t.rank())), t.shape().dims());
  if (t.dtype() != DType::string) {
    ContentWriter(out, t.bytes()).put(t.raw(), t.bytes());
    return;
  }
  auto strings = t.span<std::string>();
  auto sizes = out.initSizes(unsigned(strings.size()));
  std::size_t total = 0;
  for (unsigned i = 0; i < strings.size(); ++i) {
    sizes.set(i, strings[i].size());
    total += strings[i].size();
  }
  ContentWriter content(out, total);
  for (const std::string& s : strings) content.put(s.data(), s.size());
}

Expected<Tensor> read(schema::Tensor::Reader in) {
  TROUPE_TRY(DType dtype, read_dtype(in.getDtype()));
  if (dtype == DType::resource) return invalid_argument("a tensor cannot hold resources");
  auto list = in.getDims();
  if (dtype == DType::invalid) {
    if (list.size() > 0) return invalid_argument("an undefined tensor came with a shape");
    return Tensor{};
  }
  if (list.size() > unsigned(kMaxRank))
    return invalid_argument("rank " + std::to_string(list.size()) + " is above the limit");
  auto dims = read_numbers(list);
  TROUPE_TRY(Shape shape, Shape::make(dims));
  ContentReader content(in);
  if (dtype == DType::string) return read_strings(shape, in, std::move(content));
  TROUPE_TRY(std::int64_t bytes, byte_size(shape, dtype_size(dtype)));
  if (std::uint64_t(bytes) != content.total())
    return wrong_size("bytes", dtype, shape, content.total());
  TROUPE_TRY(Tensor t, Tensor::make(dtype, shape));
  content.get(t.mutable_raw(), t.bytes());
  if (dtype == DType::bool_) {
    auto* flags = static_cast<const std::uint8_t*>(t.raw());
    if (std::any_of(flags, flags + t.bytes(), [](std::uint8_t b) { return b > 1; }))
      return invalid_argument("a bool of a tensor is neither 0 nor 1");
  }
  return t;
}

}  // namespace troupe::detail
