#include "ops/data/arrays/npy.hpp"

#include <algorithm>
#include <cstring>

#include "ops/data/byte_stream.hpp"

namespace troupe {

namespace {

Expected<NpyHeader> header_of(const DataFile& file) {
  // Most headers are 128 bytes; the rest is read where there is more.
  std::string start;
  for (std::size_t wanted : {std::size_t{4096}, kMostNpyHeader}) {
    start.resize(std::min<std::uint64_t>(wanted, file.size()));
    TROUPE_TRY(file.read_at(0, start));
    auto header = parse_npy_header(start);
    if (header.ok() || start.size() < wanted || wanted == kMostNpyHeader) return header;
  }
  return internal_error("no header was looked at");
}

// The elements in C's order: the last index runs fastest.
std::string in_c_order(const std::string& elements, const NpyHeader& header) {
  const auto dims = header.shape.dims();
  std::vector<std::uint64_t> strides;
  std::uint64_t stride = header.item;
  for (std::int64_t dim : dims) {
    strides.push_back(stride);
    stride *= std::uint64_t(dim);
  }
  std::string out(elements.size(), '\0');
  std::vector<std::int64_t> at(dims.size());
  for (std::size_t to = 0; to < out.size(); to += header.item) {
    std::uint64_t from = 0;
    for (std::size_t d = 0; d < at.size(); ++d) from += std::uint64_t(at[d]) * strides[d];
    std::memcpy(out.data() + to, elements.data() + from, header.item);
    for (std::size_t d = at.size(); d-- > 0;) {
      if (++at[d] < dims[d]) break;
      at[d] = 0;
    }
  }
  return out;
}

void swap_bytes(char* bytes, std::size_t size, std::size_t each) {
  for (std::size_t i = 0; i < size; i += each) std::reverse(bytes + i, bytes + i + each);
}

Status append_utf8(std::uint32_t point, std::string& out) {
  if (point > 0x10ffff || (point >= 0xd800 && point < 0xe000))
    return data_loss("code point " + std::to_string(point) + ", which is no character");
  if (point < 0x80) {
    out += char(point);
  } else if (point < 0x800) {
    out += char(0xc0 | point >> 6);
    out += char(0x80 | (point & 63));
  } else if (point < 0x10000) {
    out += char(0xe0 | point >> 12);
    out += char(0x80 | (point >> 6 & 63));
    out += char(0x80 | (point & 63));
  } else {
    out += char(0xf0 | point >> 18);
    out += char(0x80 | (point >> 12 & 63));
    out += char(0x80 | (point >> 6 & 63));
    out += char(0x80 | (point & 63));
  }
  return ok_status();
}

// Text is padded with zeros.
Expected<std::string> text_of(std::string_view bytes, const NpyHeader& header) {
  if (header.kind == 'S') return std::string(bytes.substr(0, bytes.find_last_not_of('\0') + 1));
  std::vector<std::uint32_t> points(bytes.size() / 4);
  std::memcpy(points.data(), bytes.data(), points.size() * 4);
  if (header.swapped)
    for (std::uint32_t& point : points) point = __builtin_bswap32(point);
  while (!points.empty() && points.back() == 0) points.pop_back();
  std::string out;
  for (std::uint32_t point : points) TROUPE_TRY(append_utf8(point, out));
  return out;
}

Shape row_shape(const NpyHeader& header) { return Shape(header.shape.dims().subspan(1)); }

}  // namespace

std::uint64_t NpyRows::row_elements() const {
  return std::uint64_t(header_.shape.elements(1, header_.shape.rank()));
}

Component NpyRows::component() const { return {header_.dtype, row_shape(header_)}; }

Origin NpyRows::origin(std::uint64_t row) const {
  return {file_.get(), row, header_.size + row * row_elements() * header_.item};
}

Expected<NpyRows> NpyRows::open(DataFilePtr file, DType dtype, const PartialShape& row) {
  auto parsed = header_of(*file);
  if (!parsed.ok()) return in_file(parsed.status(), *file);
  NpyHeader header = *parsed;
  if (header.shape.rank() == 0) return in_file(data_loss("an array without rows"), *file);
  if (header.dtype != dtype || (row.known_rank() && !row.accepts(row_shape(header))))
    return in_file(invalid_argument("rows of " + std::string(dtype_name(header.dtype)) +
                                    row_shape(header).text() + ", not of " +
                                    std::string(dtype_name(dtype)) + row.text()),
                   *file);
  const std::uint64_t bytes = std::uint64_t(header.shape.elements()) * header.item;
  if (file->size() - header.size != bytes)
    return in_file(data_loss("an array of " + header.shape.text() + " with " +
                             std::to_string(file->size() - header.size) + " bytes of data, not " +
                             std::to_string(bytes)),
                   *file);
  if (header.fortran && header.shape.rank() > 1) {
    if (bytes > kMostUnpacked)
      return in_file(resource_exhausted("an array in Fortran's order of " + std::to_string(bytes) +
                                        " bytes; at most " + std::to_string(kMostUnpacked) +
                                        " are read into memory"),
                     *file);
    std::string elements(bytes, '\0');
    TROUPE_TRY(file->read_at(header.size, elements));
    file = memory_file(file->name(), in_c_order(elements, header));
    header.size = 0;
  }
  return NpyRows(std::move(file), header);
}

Status NpyRows::read(std::uint64_t first, std::int64_t n, Tensor& out, std::int64_t row) const {
  const std::uint64_t each = row_elements(), elements = std::uint64_t(n) * each;
  const std::uint64_t from = origin(first).offset, to = std::uint64_t(row) * each;
  if (header_.dtype != DType::string) {
    char* bytes = out.mutable_data<char>() + to * header_.item;
    const std::size_t size = elements * header_.item;
    TROUPE_TRY(file_->read_at(from, {bytes, size}));
    if (header_.swapped)
      swap_bytes(bytes, size, header_.kind == 'c' ? header_.item / 2 : header_.item);
    if (header_.kind == 'b')
      for (std::size_t i = 0; i < size; ++i) bytes[i] = char(bytes[i] != 0);
    return ok_status();
  }
  std::string bytes(elements * header_.item, '\0');
  TROUPE_TRY(file_->read_at(from, bytes));
  std::string* texts = out.mutable_data<std::string>() + to;
  for (std::uint64_t i = 0; i < elements; ++i) {
    auto text = text_of(std::string_view(bytes).substr(i * header_.item, header_.item), header_);
    if (!text.ok()) return text.status().in("in " + origin(first + i / each).text());
    texts[i] = std::move(*text);
  }
  return ok_status();
}

namespace {

class NumpySource final : public Source {
 public:
  NumpySource(Signature signature, std::vector<NpyRows> arrays)
      : Source(std::move(signature)), arrays_(std::move(arrays)) {}
  std::optional<std::uint64_t> count() const override { return arrays_[0].count(); }
  Status read(std::uint64_t first, std::int64_t n, std::span<Tensor> out,
              std::int64_t row) const override {
    for (std::size_t c = 0; c < arrays_.size(); ++c)
      TROUPE_TRY(arrays_[c].read(first, n, out[c], row));
    return ok_status();
  }
  Origin origin(std::uint64_t index) const override { return arrays_[0].origin(index); }

 private:
  std::vector<NpyRows> arrays_;
};

}  // namespace

Expected<std::unique_ptr<const Source>> numpy_source(std::vector<NpyRows> arrays) {
  Signature signature;
  for (const NpyRows& array : arrays) {
    if (array.count() != arrays[0].count())
      return invalid_argument("arrays differ in length: " + std::to_string(arrays[0].count()) +
                              " rows of " + arrays[0].origin(0).text() + ", and " +
                              std::to_string(array.count()) + " of " + array.origin(0).text());
    signature.push_back(array.component());
  }
  return std::unique_ptr<const Source>(
      std::make_unique<NumpySource>(std::move(signature), std::move(arrays)));
}

std::vector<std::string> numpy_words(const std::vector<data::NumpyArray>& arrays) {
  std::vector<std::string> words;
  for (const data::NumpyArray& array : arrays) {
    words.push_back(array.name);
    words.emplace_back(array.dtype == DType::invalid ? "invalid" : dtype_name(array.dtype));
    words.push_back(array.shape.known_rank() ? array.shape.text() : "?");
  }
  return words;
}

Expected<std::vector<data::NumpyArray>> parse_numpy_words(const StageText& stage,
                                                          std::size_t first) {
  const std::size_t words = stage.arguments.size();
  if (words <= first) return invalid_argument(stage.name + ": the list of arrays is empty");
  if (words > first + 3 * 1024 || (words - first) % 3 != 0)
    return invalid_argument("stage '" + stage.text() + "' has an array without a type");
  std::vector<data::NumpyArray> arrays;
  for (std::size_t i = first; i < words; i += 3) {
    data::NumpyArray& array = arrays.emplace_back();
    array.name = stage.arguments[i];
    TROUPE_TRY(array.dtype, stage.dtype(i + 1));
    TROUPE_TRY(array.shape, stage.shape(i + 2));
  }
  return arrays;
}

Expected<Signature> numpy_signature(const StageText& stage, const std::vector<Signature>&) {
  TROUPE_TRY(const auto arrays, parse_numpy_words(stage, 0));
  Signature signature;
  for (const data::NumpyArray& array : arrays) signature.push_back({array.dtype, array.shape});
  return signature;
}

}  // namespace troupe
