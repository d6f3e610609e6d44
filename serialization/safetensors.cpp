#include "serialization/safetensors.hpp"

#include <algorithm>
#include <bit>
#include <cstring>
#include <new>

#include "serialization/detail/safetensors_header.hpp"

namespace troupe {
namespace {

static_assert(std::endian::native == std::endian::little, "elements are written as they are");

constexpr std::uint64_t kMaxHeader = 100'000'000;  // the limit of other readers

// Wide types first, so that every tensor is aligned to its element; names break ties.
Expected<detail::SafetensorsHeader> layout(const Safetensors& content) {
  detail::SafetensorsHeader header;
  header.metadata = content.metadata;
  for (const auto& [name, tensor] : content.tensors) {
    if (name == "__metadata__") return invalid_argument("no tensor can be called '__metadata__'");
    if (!safetensors_holds(tensor.dtype()))
      return invalid_argument("safetensors cannot hold '" + name + "', which is " +
                              std::string(dtype_name(tensor.dtype())));
    TROUPE_CHECK(tensor.space() == MemorySpace::host, "tensors to write are in host memory");
    header.entries.push_back({name, tensor.dtype(), tensor.shape()});
  }
  std::stable_sort(header.entries.begin(), header.entries.end(), [](const auto& a, const auto& b) {
    return dtype_size(a.dtype) > dtype_size(b.dtype);
  });
  std::uint64_t at = 0;
  for (auto& entry : header.entries) {
    entry.begin = at;
    at += content.tensors.at(entry.name).bytes();
    entry.end = at;
  }
  return header;
}

Expected<Tensor> read_tensor(ReadableFile& file, const SafetensorsEntry& entry,
                             std::uint64_t data) {
  if (entry.dtype == DType::invalid)
    return invalid_argument("'" + entry.name + "' has dtype '" + entry.dtype_text +
                            "', which Troupe does not have");
  TROUPE_TRY(Tensor t, Tensor::make(entry.dtype, entry.shape));
  auto* bytes = static_cast<std::byte*>(t.mutable_raw());
  TROUPE_TRY(file.read_at(data + entry.begin, std::span(bytes, t.bytes())));
  if (entry.dtype == DType::bool_ &&
      std::any_of(bytes, bytes + t.bytes(), [](std::byte b) { return b > std::byte{1}; }))
    return data_loss("a bool of '" + entry.name + "' is neither 0 nor 1");
  return t;
}

}  // namespace

std::string SafetensorsEntry::type_text() const {
  const bool ours = dtype != DType::invalid;
  return (ours ? std::string(dtype_name(dtype)) : dtype_text) + shape.text();
}

bool safetensors_holds(DType dtype) { return !detail::safetensors_name(dtype).empty(); }

Status write_safetensors(WritableFile& file, const Safetensors& content) {
  TROUPE_TRY(auto header, layout(content));
  TROUPE_TRY(std::string json, detail::format_header(header));
  if (json.size() > kMaxHeader) return invalid_argument("the header would be above 100 MB");
  std::uint64_t size = json.size();
  TROUPE_TRY(file.append(std::as_bytes(std::span(&size, 1))));
  TROUPE_TRY(file.append(std::as_bytes(std::span(json))));
  for (const auto& entry : header.entries) {
    const Tensor& t = content.tensors.at(entry.name);
    TROUPE_TRY(file.append({static_cast<const std::byte*>(t.raw()), t.bytes()}));
  }
  return ok_status();
}

Status write_safetensors(const std::string& path, const Safetensors& content, FileSystem& files) {
  return write_file(files, path,
                    [&](WritableFile& file) { return write_safetensors(file, content); });
}

namespace {

// The header, and where the data begins.
Expected<std::pair<detail::SafetensorsHeader, std::uint64_t>> read_header(ReadableFile& file) {
  std::uint64_t size = 0;
  if (file.size() < sizeof size) return data_loss("it is shorter than 8 bytes");
  TROUPE_TRY(file.read_at(0, std::as_writable_bytes(std::span(&size, 1))));
  if (size > kMaxHeader || size > file.size() - sizeof size)
    return data_loss("its header of " + std::to_string(size) + " bytes is longer than the file");
  std::string json(size, ' ');
  TROUPE_TRY(file.read_at(sizeof size, std::as_writable_bytes(std::span(json))));
  std::uint64_t data = sizeof size + size;
  TROUPE_TRY(auto header, detail::parse_header(json, file.size() - data));
  return std::pair(std::move(header), data);
}

}  // namespace

Expected<Safetensors> read_safetensors(ReadableFile& file) try {
  TROUPE_TRY(auto header, read_header(file));
  Safetensors out;
  out.metadata = std::move(header.first.metadata);
  for (const auto& entry : header.first.entries) {
    TROUPE_TRY(Tensor t, read_tensor(file, entry, header.second));
    out.tensors.emplace(entry.name, std::move(t));
  }
  return out;
} catch (const std::bad_alloc&) {
  return resource_exhausted("no memory for its header");
}

Expected<std::vector<Tensor>> read_safetensors(ReadableFile& file,
                                               const std::vector<std::string>& names) try {
  TROUPE_TRY(const auto header, read_header(file));
  std::map<std::string_view, const SafetensorsEntry*> entries;
  for (const auto& entry : header.first.entries) entries.emplace(entry.name, &entry);
  std::vector<Tensor> out;
  for (const std::string& name : names) {
    const auto entry = entries.find(name);
    if (entry == entries.end()) return not_found("it has no tensor '" + name + "'");
    TROUPE_TRY(Tensor t, read_tensor(file, *entry->second, header.second));
    out.push_back(std::move(t));
  }
  return out;
} catch (const std::bad_alloc&) {
  return resource_exhausted("no memory for its header");
}

namespace {

Status in_file(const Status& status, const std::string& path) {
  return status.in("in the safetensors file '" + path + "'");
}

}  // namespace

Expected<Safetensors> read_safetensors(const std::string& path, FileSystem& files) {
  TROUPE_TRY(auto file, files.open(path));
  auto content = read_safetensors(*file);
  if (!content.ok()) return in_file(content.status(), path);
  return content;
}

Expected<SafetensorsFile> SafetensorsFile::open(const std::string& path, FileSystem& files) try {
  SafetensorsFile made;
  made.path_ = path;
  TROUPE_TRY(made.file_, files.open(path));
  auto header = read_header(*made.file_);
  if (!header.ok()) return in_file(header.status(), path);
  made.data_ = header->second;
  for (SafetensorsEntry& entry : header->first.entries) {
    std::string name = entry.name;
    made.entries_.emplace(std::move(name), std::move(entry));
  }
  return made;
} catch (const std::bad_alloc&) {
  return in_file(resource_exhausted("no memory for its header"), path);
}

const SafetensorsEntry* SafetensorsFile::find(const std::string& name) const {
  const auto at = entries_.find(name);
  return at == entries_.end() ? nullptr : &at->second;
}

Expected<Tensor> SafetensorsFile::read(const SafetensorsEntry& entry) const {
  auto tensor = read_tensor(*file_, entry, data_);
  if (!tensor.ok()) return in_file(tensor.status(), path_);
  return tensor;
}

}  // namespace troupe
