#include "troupe/ops/data/dataset.hpp"

#include <zlib.h>

#include <algorithm>
#include <cstring>

#include "troupe/ops/data/digits.hpp"

namespace troupe {

namespace {

template <class T>
Expected<T> attr(const NodeDef& def, std::string_view name) {
  auto found = def.attrs.find(name);
  const T* value = found == def.attrs.end() ? nullptr : found->second.get<T>();
  if (value == nullptr)
    return invalid_argument("dataset '" + def.name + "' has no attribute '" + std::string(name) +
                            "' of the right kind");
  return *value;
}

Expected<PipelineSpec> pipeline_spec(const NodeDef& def) {
  PipelineSpec spec;
  TROUPE_TRY(spec.batch, attr<std::int64_t>(def, "batch"));
  TROUPE_TRY(spec.shuffle, attr<std::int64_t>(def, "shuffle"));
  TROUPE_TRY(const std::int64_t seed, attr<std::int64_t>(def, "seed"));
  spec.seed = std::uint64_t(seed);
  TROUPE_TRY(spec.repeat, attr<std::int64_t>(def, "repeat"));
  TROUPE_TRY(spec.drop_remainder, attr<bool>(def, "drop_remainder"));
  TROUPE_TRY(spec.limit, attr<std::int64_t>(def, "limit"));
  return spec;
}

std::uint32_t big_endian(std::string_view bytes) {
  std::uint32_t value = 0;
  for (char c : bytes.substr(0, 4)) value = value << 8 | std::uint8_t(c);
  return value;
}

struct IdxHeader {
  std::size_t size = 0;
  Shape shape;
};

Expected<IdxHeader> idx_header(std::string_view content) {
  // 00 00 kind rank, then one 32-bit dimension each. Kind 8 is unsigned bytes.
  if (content.size() < 4 || content[0] != 0 || content[1] != 0)
    return data_loss("not an IDX file: its first bytes are not zero");
  if (content[2] != 8) return data_loss("not an IDX file of bytes (kind 8)");
  const int rank = std::uint8_t(content[3]);
  if (rank < 1 || rank > kMaxRank)
    return data_loss("an IDX file of rank " + std::to_string(rank) + "; 1 to 8 are possible");
  IdxHeader header{4 + 4 * std::size_t(rank), {}};
  if (content.size() < header.size) return data_loss("an IDX file that ends inside its header");
  std::vector<std::int64_t> dims;
  for (int i = 0; i < rank; ++i) dims.push_back(big_endian(content.substr(4 + 4 * std::size_t(i))));
  TROUPE_TRY(header.shape, Shape::make(dims));
  return header;
}

// gzip content up to `limit` bytes, or all of it; `more` says whether there was more.
Expected<std::string> unpack(std::string_view content, std::size_t limit, bool& more) {
  z_stream stream{};
  if (inflateInit2(&stream, 15 + 16) != Z_OK) return resource_exhausted("zlib has no memory");
  std::string out, block(std::size_t{1} << 18, '\0');
  int result = Z_OK;
  while (result == Z_OK && out.size() <= limit) {
    if (stream.avail_in == 0) {
      const std::size_t part = std::min<std::size_t>(content.size(), std::size_t{1} << 30);
      stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(content.data()));
      stream.avail_in = uInt(part);
      content.remove_prefix(part);
    }
    stream.next_out = reinterpret_cast<Bytef*>(block.data());
    stream.avail_out = uInt(block.size());
    result = inflate(&stream, Z_NO_FLUSH);
    out.append(block.data(), block.size() - stream.avail_out);
  }
  const std::size_t left = stream.avail_in + content.size();
  inflateEnd(&stream);
  more = out.size() > limit;
  if (more) return out.substr(0, limit);
  if (result != Z_STREAM_END) return data_loss("damaged or truncated gzip content");
  if (left > 0)
    return data_loss(std::to_string(left) + " bytes stand after the end of the gzip content");
  return out;
}

// The content of a packed IDX file: no more of it is unpacked than its header says.
Expected<std::string> unpack_idx(std::string_view content) {
  bool more = false;
  TROUPE_TRY(const std::string start, unpack(content, 4 + 4 * kMaxRank, more));
  TROUPE_TRY(const IdxHeader header, idx_header(start));
  constexpr std::size_t kMost = std::size_t{4} << 30;
  return gunzip(content, std::min(kMost, header.size + std::size_t(header.shape.elements())));
}

Expected<Tensor> load_idx(const std::string& path, ReadFile read_file) {
  std::string name = path;
  auto content = read_file(name);
  if (!content.ok() && content.status().code() == Code::not_found) {
    name += ".gz";
    auto compressed = read_file(name);
    if (!compressed.ok() && compressed.status().code() == Code::not_found) return content.status();
    content = std::move(compressed);
  }
  if (content.ok() && content->starts_with("\x1f\x8b")) content = unpack_idx(*content);
  if (!content.ok()) return content.status().in("in file '" + name + "'");
  auto tensor = parse_idx(*content);
  if (!tensor.ok()) return tensor.status().in("in file '" + name + "'");
  return tensor;
}

// The examples from `first` on, and no more than `limit` of them.
Expected<std::vector<Tensor>> examples_of(const NodeDef& def, std::int64_t limit,
                                          ReadFile read_file) {
  TROUPE_TRY(const std::int64_t first, attr<std::int64_t>(def, "first"));
  TROUPE_TRY(const std::string source, attr<std::string>(def, "source"));
  if (first < 0) return invalid_argument("`first` must not be negative");
  if (source == "digits") {
    if (limit < 1) return invalid_argument("drawn digits need a `limit`: the set has no end");
    TROUPE_TRY(const std::int64_t seed, attr<std::int64_t>(def, "digits_seed"));
    return digit_set(std::uint64_t(seed), std::uint64_t(first), limit);
  }
  TROUPE_TRY(const auto files, attr<std::vector<std::string>>(def, "files"));
  std::vector<Tensor> examples;
  for (const std::string& path : files) {
    TROUPE_TRY(const Tensor component, load_idx(path, read_file));
    examples.push_back(component.rows(std::min(first, component.dim(0)), component.dim(0)));
  }
  return examples;
}

// The graph was built on the declared dtypes and shapes, so an element must have them.
Status check_elements(const NodeDef& def, Pipeline& pipeline) {
  TROUPE_TRY(const auto types, attr<std::vector<DType>>(def, "types"));
  TROUPE_TRY(const auto shapes, attr<std::vector<PartialShape>>(def, "shapes"));
  TROUPE_TRY(const auto element, pipeline.sample());
  bool fits = element.size() == types.size() && element.size() == shapes.size();
  for (std::size_t i = 0; fits && i < element.size(); ++i)
    fits = element[i].dtype() == types[i] && shapes[i].accepts(element[i].shape());
  if (fits) return ok_status();
  auto list = [](const auto& parts, auto text) {
    std::string out;
    for (std::size_t i = 0; i < parts.size(); ++i) out += (i == 0 ? "" : ", ") + text(i);
    return out;
  };
  return invalid_argument(
      "dataset '" + def.name + "' declares elements of " +
      list(types,
           [&](std::size_t i) {
             return std::string(dtype_name(types[i])) + (i < shapes.size() ? shapes[i].text() : "");
           }) +
      ", but its files hold " + list(element, [&](std::size_t i) {
        return std::string(dtype_name(element[i].dtype())) + element[i].shape().text();
      }));
}

}  // namespace

Expected<Pipeline> open_dataset(const NodeDef& def, ReadFile read_file) {
  TROUPE_TRY(const PipelineSpec spec, pipeline_spec(def));
  TROUPE_TRY(auto examples, examples_of(def, spec.limit, read_file));
  TROUPE_TRY(auto pipeline, Pipeline::make(std::move(examples), spec));
  TROUPE_TRY(check_elements(def, pipeline));
  return pipeline;
}

Expected<Tensor> parse_idx(std::string_view content) {
  TROUPE_TRY(const IdxHeader header, idx_header(content));
  const std::size_t bytes = content.size() - header.size;
  if (std::uint64_t(header.shape.elements()) != bytes)
    return data_loss("an IDX file of shape " + header.shape.text() + " with " +
                     std::to_string(bytes) + " bytes of data");
  TROUPE_TRY(Tensor tensor, Tensor::make(DType::u8, header.shape));
  if (bytes > 0) std::memcpy(tensor.mutable_raw(), content.data() + header.size, bytes);
  return tensor;
}

Expected<std::string> gunzip(std::string_view content, std::size_t limit) {
  bool more = false;
  TROUPE_TRY(std::string out, unpack(content, limit, more));
  if (more)
    return resource_exhausted("more than " + std::to_string(limit) + " bytes when unpacked");
  return out;
}

}  // namespace troupe
