#include "serialization/detail/words.hpp"

#include <algorithm>

#include "serialization/detail/graph.hpp"
#include "serialization/detail/values.hpp"
#include "serialization/strings.hpp"

namespace troupe::detail {

void WordWriter::put(const Status& status) {
  word(std::uint64_t(status.code()));
  if (status.ok()) return;
  put(status.message());
  put(status.site().file);
  put(status.site().line);
  put(status.trail());
}

void WordWriter::put(const Tensor& t) {
  word(std::uint64_t(t.dtype()));
  if (!t.defined()) return word(0), word(0);
  TROUPE_CHECK(t.space() == MemorySpace::host && t.dtype() != DType::resource,
               "only host tensors are encoded");
  word(std::uint64_t(t.rank()));
  for (std::int64_t dim : t.shape().dims()) put(dim);
  if (t.dtype() != DType::string) return bytes(t.raw(), t.bytes());
  begin_bytes(encoded_strings_size(t));
  for (const std::string& s : t.span<std::string>()) word(s.size());
  for (const std::string& s : t.span<std::string>()) copy(s.data(), s.size());
  pad();
}

void WordWriter::put(const std::shared_ptr<const GraphDef>& graph) {
  TROUPE_CHECK(graph, "there is a graph to be sent");
  put(build<schema::Graph>([&](schema::Graph::Builder out) { write(out, *graph); }));
}

std::uint64_t WordReader::word() {
  if (left_.size() < sizeof(std::uint64_t)) {
    fail("it ends too early");
    return 0;
  }
  std::uint64_t value = 0;
  std::memcpy(&value, left_.data(), sizeof value);
  left_ = left_.subspan(sizeof value);
  return value;
}

std::uint64_t WordReader::count() {
  const std::uint64_t n = word();
  if (n > left_.size() / sizeof(std::uint64_t)) fail("it ends before its list");
  return n;
}

std::span<const std::byte> WordReader::bytes() {
  const std::uint64_t size = word();
  if (size > left_.size()) {
    fail("it ends before its bytes");
    return {};
  }
  auto out = left_.first(size);
  const std::size_t padded = (size + 7) / 8 * 8;  // whole words are left
  auto padding = left_.subspan(size, padded - size);
  if (std::any_of(padding.begin(), padding.end(), [](std::byte b) { return b != std::byte{0}; })) {
    fail("something stands in its padding");
    return {};
  }
  left_ = left_.subspan(padded);
  return out;
}

void WordReader::get(std::string& out) {
  auto text = bytes();
  out.assign(reinterpret_cast<const char*>(text.data()), text.size());
}

void WordReader::get(std::vector<std::byte>& out) {
  auto data = bytes();
  out.assign(data.begin(), data.end());
}

void WordReader::get(Status& out) {
  const std::uint64_t code = word();
  if (code > std::numeric_limits<std::uint8_t>::max() || !valid_code(std::uint8_t(code)))
    return fail("unknown status code " + std::to_string(code));
  if (Code(code) == Code::ok) return;
  std::string message;
  Site site;
  std::vector<std::string> trail;
  get_all(std::tie(message, site.file, site.line, trail));
  if (error_.ok()) out = Status::from_parts(Code(code), message, site, std::move(trail));
}

void WordReader::get(Tensor& out) {
  const std::uint64_t dtype = word();
  std::vector<std::int64_t> dims;
  get(dims);
  auto content = bytes();
  if (error_.ok()) take(out, tensor(dtype, dims, content));
}

Expected<Tensor> WordReader::tensor(std::uint64_t type, const std::vector<std::int64_t>& dims,
                                    std::span<const std::byte> content) {
  if (type > std::numeric_limits<std::uint8_t>::max())
    return invalid_argument("unknown dtype " + std::to_string(type));
  TROUPE_TRY(DType dtype, read_dtype(std::uint8_t(type)));
  if (dtype == DType::resource) return invalid_argument("a tensor cannot hold resources");
  if (dtype == DType::invalid) {
    if (!dims.empty() || !content.empty())
      return invalid_argument("an undefined tensor came with a shape or bytes");
    return Tensor{};
  }
  if (dims.size() > std::size_t(kMaxRank))
    return invalid_argument("rank " + std::to_string(dims.size()) + " is above the limit");
  TROUPE_TRY(Shape shape, Shape::make(dims));
  if (dtype == DType::string) return decode_strings(shape, content);
  TROUPE_TRY(std::int64_t size, byte_size(shape, dtype_size(dtype)));
  if (std::uint64_t(size) != content.size())
    return invalid_argument("tensor " + std::string(dtype_name(dtype)) + shape.text() +
                            " came with " + std::to_string(content.size()) + " bytes");
  if (dtype == DType::bool_ &&
      std::any_of(content.begin(), content.end(), [](std::byte b) { return b > std::byte{1}; }))
    return invalid_argument("a bool of a tensor is neither 0 nor 1");
  TROUPE_TRY(Tensor t, Tensor::make(dtype, shape));
  if (!content.empty()) std::memcpy(t.mutable_raw(), content.data(), content.size());
  return t;
}

void WordReader::get(std::shared_ptr<const GraphDef>& out) {
  auto words = bytes();
  if (!error_.ok()) return;
  auto graph = detail::parse<schema::Graph>(
      words, [](schema::Graph::Reader in) { return detail::read(in); });
  if (!graph.ok()) return fail(graph.status());
  out = std::make_shared<const GraphDef>(std::move(graph).value());
}

}  // namespace troupe::detail
