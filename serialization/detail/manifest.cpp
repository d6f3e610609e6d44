#include "serialization/detail/manifest.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <nlohmann/json.hpp>
#include <set>

#include "serialization/detail/sha256.hpp"

namespace troupe::detail {
namespace {

constexpr std::string_view kFormat = "troupe checkpoint 6";
constexpr std::string_view kFormat5 = "troupe checkpoint 5";  // no record of each tensor's file
constexpr std::string_view kFormat4 = "troupe checkpoint 4";  // no program.state
constexpr std::string_view kFormat3 = "troupe checkpoint 3";  // no resources
// Its "step" is the commit; training began with commit 1, the initial values.
constexpr std::string_view kFormat2 = "troupe checkpoint 2";
constexpr std::size_t kTailBytes = 22;  // ,"crc32c":"01234567"}\n

std::string tail_of(std::string_view body) {
  std::string tail =
      fmt::format(",\"crc32c\":\"{:08x}\"}}\n", crc32c(std::as_bytes(std::span(body))));
  TROUPE_CHECK(tail.size() == kTailBytes, "the tail of a manifest has a fixed size");
  return tail;
}

std::uint64_t chunks_of(std::uint64_t size) {
  return size / kChunkBytes + (size % kChunkBytes != 0);
}

// A name that stays inside its directory.
bool plain(const std::string& name) {
  return !name.empty() && name[0] != '.' && name != "manifest.json" &&
         name.find('/') == std::string::npos && name.find('\0') == std::string::npos;
}

Status check(const Manifest& manifest) {
  std::set<std::string> names;
  for (const ManifestFile& file : manifest.files) {
    if (!plain(file.name) || !names.insert(file.name).second)
      return data_loss("its manifest has the file '" + file.name +
                       "', which stands there twice or is no plain name");
    if (file.chunks.size() != chunks_of(file.size))
      return data_loss("its manifest has too few or too many checksums for " + file.name);
  }
  std::set<std::string> tensors;
  for (const ManifestFile& file : manifest.files)
    for (const StoredTensor& tensor : file.tensors)
      if (!tensors.insert(tensor.name).second)
        return data_loss("'" + tensor.name + "' stands in two places");
  std::set<ResourceName> resources;
  for (const ManifestResource& each : manifest.resources)
    if (!resources.insert(each.resource).second || names.erase(each.file) == 0)
      return data_loss("its manifest has the " + each.resource.text() +
                       " twice, or without a file of its own");
  std::set<DatasetName> datasets;
  for (const DatasetPlace& place : manifest.datasets)
    if (!datasets.insert(place.dataset).second || !place.possible())
      return data_loss("its manifest has the dataset '" + place.dataset.name +
                       "' twice, or at a place that cannot be");
  return ok_status();
}

nlohmann::ordered_json to_json(const DatasetPlace& place) {
  return {{"container", place.dataset.container},
          {"name", place.dataset.name},
          {"next", place.next},
          {"left", place.left}};
}

DatasetPlace place_of(const nlohmann::json& json) {
  return {{json.at("container").get<std::string>(), json.at("name").get<std::string>()},
          json.at("next").get<std::uint64_t>(),
          json.at("left").get<std::vector<std::uint64_t>>()};
}

nlohmann::ordered_json to_json(const ManifestResource& each) {
  return {{"kind", each.resource.kind},
          {"container", each.resource.container},
          {"name", each.resource.name},
          {"file", each.file}};
}

nlohmann::ordered_json to_json(const ManifestFile& file) {
  nlohmann::ordered_json json = {
      {"name", file.name}, {"size", file.size}, {"crc32c_per_mib", file.chunks}};
  for (const StoredTensor& each : file.tensors)
    json["tensors"].push_back({{"name", each.name},
                               {"dtype", dtype_name(each.dtype)},
                               {"shape", each.shape.dims()},
                               {"sha256", each.sha256}});
  return json;
}

StoredTensor tensor_of(const nlohmann::json& json) {
  StoredTensor tensor;
  tensor.name = json.at("name").get<std::string>();
  const auto dtype = parse_dtype(json.at("dtype").get<std::string>());
  if (!dtype) throw Error(data_loss("'" + tensor.name + "' has an unknown dtype"));
  tensor.dtype = *dtype;
  tensor.shape = value_or_throw(Shape::make(json.at("shape").get<std::vector<std::int64_t>>()));
  tensor.sha256 = json.at("sha256").get<std::string>();
  return tensor;
}

ManifestFile file_of(const nlohmann::json& json) {
  ManifestFile file{json.at("name").get<std::string>(),
                    json.at("size").get<std::uint64_t>(),
                    json.at("crc32c_per_mib").get<std::vector<std::uint32_t>>(),
                    {}};
  if (const auto tensors = json.find("tensors"); tensors != json.end())
    for (const auto& each : *tensors) file.tensors.push_back(tensor_of(each));
  return file;
}

ManifestResource resource_of(const nlohmann::json& json) {
  return {{json.at("kind").get<std::string>(), json.at("container").get<std::string>(),
           json.at("name").get<std::string>()},
          json.at("file").get<std::string>()};
}

}  // namespace

Expected<std::string> format_manifest(const Manifest& m) try {
  nlohmann::ordered_json files = nlohmann::ordered_json::array();
  for (const ManifestFile& file : m.files) files.push_back(to_json(file));
  nlohmann::ordered_json datasets = nlohmann::ordered_json::array();
  for (const DatasetPlace& place : m.datasets) datasets.push_back(to_json(place));
  nlohmann::ordered_json resources = nlohmann::ordered_json::array();
  for (const ManifestResource& each : m.resources) resources.push_back(to_json(each));
  nlohmann::ordered_json json = {{"format", kFormat},
                                 {"step", m.step},
                                 {"commit", m.commit},
                                 {"seed", m.seed},
                                 {"graph_sha256", m.graph_hash},
                                 {"numeric_profile", m.numeric_profile},
                                 {"tensors_sha256", tensors_sha256(m.files)},
                                 {"metadata", m.metadata},
                                 {"datasets", datasets},
                                 {"resources", resources},
                                 {"files", files}};
  std::string text = json.dump();
  text.pop_back();  // the tail has the closing brace
  return text + tail_of(text);
} catch (const nlohmann::json::exception& e) {
  return invalid_argument(std::string("a text of the checkpoint is not UTF-8: ") + e.what());
}

Expected<Manifest> parse_manifest(std::string_view text) try {
  if (text.size() < kTailBytes) return data_loss("its manifest is cut");
  std::string_view body = text.substr(0, text.size() - kTailBytes);
  if (text.substr(body.size()) != tail_of(body)) return data_loss("its manifest is damaged");
  auto json = nlohmann::json::parse(std::string(body) + "}");
  const std::string format = json.at("format").get<std::string>();
  const bool known = format == kFormat || format == kFormat5 || format == kFormat4 ||
                     format == kFormat3 || format == kFormat2;
  if (!known)
    return failed_precondition("the checkpoint's format is " + json.at("format").dump() +
                               ", not '" + std::string(kFormat) + "'");
  Manifest m;
  m.folder = json.at("step").get<std::uint64_t>();
  m.commit = format == kFormat2 ? m.folder : json.at("commit").get<std::uint64_t>();
  m.step = format == kFormat2 ? std::max<std::uint64_t>(m.commit, 1) - 1 : m.folder;
  m.seed = json.at("seed").get<std::uint64_t>();
  m.graph_hash = json.at("graph_sha256").get<std::string>();
  m.numeric_profile = json.at("numeric_profile").get<std::string>();
  const bool stored = format == kFormat;
  (stored ? m.tensors_sha256 : m.params_sha256) =
      json.at(stored ? "tensors_sha256" : "params_sha256").get<std::string>();
  m.metadata = json.at("metadata").get<std::map<std::string, std::string>>();
  for (const auto& place : json.at("datasets")) m.datasets.push_back(place_of(place));
  if (format != kFormat3 && format != kFormat2)
    for (const auto& each : json.at("resources")) m.resources.push_back(resource_of(each));
  for (const auto& file : json.at("files")) m.files.push_back(file_of(file));
  TROUPE_TRY(check(m));
  if (stored && m.tensors_sha256 != tensors_sha256(m.files))
    return data_loss("its manifest's tensors do not have the hash that it states");
  return m;
} catch (const nlohmann::json::exception& e) {
  return data_loss(std::string("its manifest cannot be read: ") + e.what());
} catch (const Error& e) {
  return data_loss("its manifest cannot be read: " + e.status().message());
}

std::string tensors_sha256(const std::vector<ManifestFile>& files) {
  std::map<std::string_view, std::string_view> hashes;
  for (const ManifestFile& file : files)
    for (const StoredTensor& tensor : file.tensors) hashes.emplace(tensor.name, tensor.sha256);
  Sha256 sha;
  for (const auto& [name, hash] : hashes) sha.text(name), sha.text(hash);
  return sha.hex();
}

Expected<std::string> format_files(const std::vector<ManifestFile>& files) try {
  nlohmann::ordered_json json = nlohmann::ordered_json::array();
  for (const ManifestFile& file : files) json.push_back(to_json(file));
  return json.dump();
} catch (const nlohmann::json::exception& e) {
  return invalid_argument(std::string("a name of a tensor is not UTF-8: ") + e.what());
}

Expected<std::vector<ManifestFile>> parse_files(std::string_view text) try {
  Manifest m;
  for (const auto& file : nlohmann::json::parse(text)) m.files.push_back(file_of(file));
  TROUPE_TRY(check(m));
  return std::move(m.files);
} catch (const nlohmann::json::exception& e) {
  return data_loss(e.what());
} catch (const Error& e) {
  return e.status();
}

Status ChunkedWriter::append(std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    std::size_t n = std::min(bytes.size(), kChunkBytes - chunk_.size());
    chunk_.insert(chunk_.end(), bytes.begin(), bytes.begin() + std::ptrdiff_t(n));
    bytes = bytes.subspan(n);
    if (chunk_.size() == kChunkBytes) TROUPE_TRY(flush());
  }
  return ok_status();
}

Status ChunkedWriter::sync() {
  if (!chunk_.empty()) TROUPE_TRY(flush());
  return file_.sync();
}

Status ChunkedWriter::flush() {
  record_.chunks.push_back(crc32c(chunk_));
  record_.size += chunk_.size();
  TROUPE_TRY(file_.append(chunk_));
  chunk_.clear();
  return ok_status();
}

Status verify_chunks(ReadableFile& file, const ManifestFile& record) {
  if (file.size() != record.size)
    return data_loss(record.name + " has " + std::to_string(file.size()) + " bytes instead of " +
                     std::to_string(record.size));
  std::vector<std::byte> chunk(std::min<std::uint64_t>(kChunkBytes, record.size));
  std::uint64_t at = 0;
  for (std::size_t i = 0; i < record.chunks.size(); ++i, at += kChunkBytes) {
    auto piece = std::span(chunk).first(std::min<std::uint64_t>(kChunkBytes, record.size - at));
    TROUPE_TRY(file.read_at(at, piece));
    if (crc32c(piece) != record.chunks[i])
      return data_loss(record.name + " is damaged in its MiB " + std::to_string(i));
  }
  return ok_status();
}

}  // namespace troupe::detail
