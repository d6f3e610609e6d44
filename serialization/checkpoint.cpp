#include "serialization/checkpoint.hpp"

#include <algorithm>
#include <charconv>
#include <cstring>
#include <iterator>
#include <set>
#include <utility>

#include "core/log.hpp"
#include "serialization/detail/manifest.hpp"
#include "serialization/detail/values.hpp"
#include "serialization/digest.hpp"
#include "serialization/resource_state.hpp"
#include "serialization/safetensors.hpp"
#include "serialization/schema/tensors.capnp.h"

namespace troupe {
namespace {

using detail::Manifest;
using detail::ManifestFile;
using detail::ManifestResource;

constexpr std::string_view kPrefix = "ckpt-", kTemporary = ".ckpt-", kSuffix = ".tmp",
                           kReplaced = ".replaced";
constexpr std::string_view kManifest = "manifest.json", kOther = "other.tensors",
                           kOtherSuffix = ".tensors", kProgram = "program.state",
                           kShardSuffix = ".safetensors", kStateSuffix = ".state", kToken = "draft";
constexpr std::uint64_t kMaxManifest = std::uint64_t{64} << 20;
constexpr std::uint64_t kMaxProgram = std::uint64_t{64} << 20;
constexpr std::uint64_t kMaxOther = std::uint64_t{16} << 30;  // a file that is read as a whole

std::string join(const std::string& dir, std::string_view name) {
  return dir + "/" + std::string(name);
}

std::string checkpoint_name(std::uint64_t step) {
  return std::string(kPrefix) + std::to_string(step);
}

// "ckpt-1200" and nothing that only looks like it.
std::optional<std::uint64_t> step_of(std::string_view name) {
  if (!name.starts_with(kPrefix)) return std::nullopt;
  name.remove_prefix(kPrefix.size());
  std::uint64_t step = 0;
  auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), step);
  if (error != std::errc{} || end != name.data() + name.size() || name != std::to_string(step))
    return std::nullopt;
  return step;
}

// ".ckpt-1200.replaced" is ckpt-1200 until that is there again (CheckpointDraft::replace).
std::optional<std::uint64_t> replaced_step_of(std::string_view name) {
  if (!name.starts_with('.') || !name.ends_with(kReplaced)) return std::nullopt;
  return step_of(name.substr(1, name.size() - 1 - kReplaced.size()));
}
bool has_step(const std::vector<std::string>& names, std::uint64_t step) {  // sorted
  return std::binary_search(names.begin(), names.end(), checkpoint_name(step));
}
std::string replaced_name(std::string_view checkpoint) {
  return "." + std::string(checkpoint) + std::string(kReplaced);
}

Expected<ManifestFile> write_recorded(FileSystem& files, const std::string& dir, std::string name,
                                      FunctionRef<Status(WritableFile&)> write) {
  TROUPE_TRY(auto file, files.create(join(dir, name)));
  ManifestFile record{std::move(name), 0, {}, {}};
  detail::ChunkedWriter chunked(*file, record);
  TROUPE_TRY(write(chunked));
  TROUPE_TRY(chunked.sync());
  return record;
}

// "shard-00012"
std::string numbered(std::string_view prefix, std::size_t n) {
  const std::string number = std::to_string(n);
  return std::string(prefix) + std::string(5 - std::min<std::size_t>(5, number.size()), '0') +
         number;
}

Status write_other(WritableFile& file, const std::map<std::string, Tensor>& tensors) {
  return file.append(detail::build<schema::Tensors>([&](schema::Tensors::Builder out) {
    auto list = out.initTensors(unsigned(tensors.size()));
    unsigned n = 0;
    for (const auto& [name, tensor] : tensors) {
      list[n].setName(detail::text(name));
      detail::write(list[n++].initTensor(), tensor);
    }
  }));
}

StoredTensor stored_of(const std::string& name, const Tensor& tensor) {
  return {name, tensor.dtype(), tensor.shape(), tensor_sha256(tensor)};
}

Status write_resources(FileSystem& files, const std::string& dir, const CheckpointData& data,
                       Manifest& manifest) {
  for (const SavedResource& saved : data.resources) {
    const std::string name =
        numbered("resource-", manifest.resources.size()) + std::string(kStateSuffix);
    TROUPE_TRY(
        ManifestFile file, write_recorded(files, dir, name, [&](WritableFile& f) {
          return f.append({static_cast<const std::byte*>(saved.state.raw()), saved.state.bytes()});
        }));
    manifest.files.push_back(std::move(file));
    manifest.resources.push_back({saved.resource, name});
  }
  return ok_status();
}

// The notes of the job's clients. There is one client, without a name.
constexpr const char* kClients = "clients";

Expected<std::vector<std::byte>> encode_program(const CheckpointData& data) {
  StateWriter out;
  out.text(kClients);
  out.number(1);
  out.text("");
  out.text(data.note);
  out.number(data.once.size());
  for (const std::string& name : data.once) out.text(name);
  out.tensors(data.fetches);
  out.number(data.draws);
  out.number(data.graph.size());
  for (const GraphMark& mark : data.graph)
    for (std::uint64_t each : {mark.nodes, mark.functions, mark.hash}) out.number(each);
  return encode_state(out.take());
}

Status write_program(FileSystem& files, const std::string& dir, const CheckpointData& data,
                     Manifest& manifest) {
  if (data.note.empty() && data.once.empty() && data.fetches.empty() && data.graph.empty() &&
      data.draws == 0)
    return ok_status();
  TROUPE_TRY(const std::vector<std::byte> program, encode_program(data));
  TROUPE_TRY(ManifestFile file, write_recorded(files, dir, std::string(kProgram),
                                               [&](WritableFile& f) { return f.append(program); }));
  manifest.files.push_back(std::move(file));
  return ok_status();
}

Status decode_program(std::span<const std::byte> bytes, CheckpointData& data) {
  TROUPE_TRY(const ResourceState state, decode_state(bytes));
  StateReader in(state);
  in.expect(kClients);
  if (in.number() != 1 || !in.text().empty()) in.refuse("more clients than one");
  data.note = in.text();
  if (data.note.size() > kMostNote) in.refuse("a note of more than 64 KiB");
  for (std::uint64_t n = in.count(); n > 0 && in.ok(); --n) data.once.insert(in.text());
  data.fetches = in.tensors();
  for (const Tensor& value : data.fetches)
    if (!value.defined()) in.refuse("a fetch without a value");
  data.draws = in.number();
  for (std::uint64_t n = in.count(); n > 0 && in.ok(); --n) {
    GraphMark& mark = data.graph.emplace_back();
    for (std::uint64_t* each : {&mark.nodes, &mark.functions, &mark.hash}) *each = in.number();
  }
  return in.end();
}

// Renames it to a temporary name first, so that a partly removed one is never read.
Status remove_checkpoint(FileSystem& files, const std::string& dir, const CheckpointInfo& info) {
  std::string away =
      join(dir, std::string(kTemporary) + std::to_string(info.step)) + std::string(kSuffix);
  TROUPE_TRY(files.rename(info.path, away));
  return files.remove_dir(away);
}

Status prune(FileSystem& files, const std::string& dir, std::uint64_t newest,
             const CheckpointOptions& options) {
  const std::size_t keep = options.keep;
  if (keep == 0) return ok_status();
  TROUPE_TRY(auto all, list_checkpoints(dir, files));
  std::erase_if(all, [&](const CheckpointInfo& info) {
    return info.step > newest || options.spare.contains(checkpoint_name(info.step));
  });
  Status first;
  for (std::size_t i = 0; i + keep < all.size(); ++i) {
    const Status removed = remove_checkpoint(files, dir, all[i]);
    if (first.ok()) first = removed;
  }
  return first;
}

Expected<Manifest> read_manifest(FileSystem& files, const std::string& path) {
  auto bytes = read_file(files, join(path, kManifest), kMaxManifest);
  if (bytes.status().code() == Code::not_found)
    return not_found("'" + path + "' is no checkpoint: it has no manifest");
  TROUPE_TRY(bytes.status());
  TROUPE_TRY(Manifest manifest, detail::parse_manifest(std::string_view(
                                    reinterpret_cast<const char*>(bytes->data()), bytes->size())));
  auto step = step_of(path.substr(path.rfind('/') + 1));
  if (step && *step != manifest.folder)
    return data_loss("its manifest is that of " + checkpoint_name(manifest.folder));
  return manifest;
}

Expected<Manifest> verified(FileSystem& files, const std::string& path) {
  TROUPE_TRY(Manifest manifest, read_manifest(files, path));
  for (const ManifestFile& record : manifest.files) {
    auto file = files.open(join(path, record.name));
    if (file.status().code() == Code::not_found) return data_loss(record.name + " is missing");
    TROUPE_TRY(file.status());
    TROUPE_TRY(detail::verify_chunks(**file, record));
  }
  return manifest;
}

Status read_other(FileSystem& files, const std::string& path,
                  std::map<std::string, Tensor>& tensors) {
  TROUPE_TRY(auto bytes, read_file(files, path, kMaxOther));
  return detail::parse<schema::Tensors>(bytes, [&](schema::Tensors::Reader in) -> Status {
    for (auto item : in.getTensors()) {
      TROUPE_TRY(Tensor t, detail::read(item.getTensor()));
      if (!t.defined() || !tensors.emplace(detail::text(item.getName()), std::move(t)).second)
        return data_loss("a tensor stands there twice, or is none");
    }
    return ok_status();
  });
}

Expected<Tensor> read_state(FileSystem& files, const std::string& path) {
  TROUPE_TRY(const auto bytes, read_file(files, path, kMaxOther));
  TROUPE_TRY(Tensor state, Tensor::make(DType::u8, Shape{std::int64_t(bytes.size())}));
  if (!bytes.empty()) std::memcpy(state.mutable_raw(), bytes.data(), bytes.size());
  return state;
}

// For formats that do not record the file of each tensor.
Status read_all_tensors(FileSystem& files, const std::string& path, const Manifest& manifest,
                        CheckpointData& data) {
  for (const ManifestFile& record : manifest.files) {
    if (record.name == kOther) TROUPE_TRY(read_other(files, join(path, kOther), data.tensors));
    if (!record.name.ends_with(kShardSuffix)) continue;
    TROUPE_TRY(Safetensors shard, read_safetensors(join(path, record.name), files));
    for (auto& [name, tensor] : shard.tensors)
      if (!data.tensors.emplace(name, std::move(tensor)).second)
        return data_loss("'" + name + "' stands in two shards");
  }
  if (params_sha256({data.tensors.begin(), data.tensors.end()}) != manifest.params_sha256)
    return data_loss("its tensors do not have the hash that its manifest states");
  return ok_status();
}

Expected<StoredCheckpoint> open_verified(FileSystem& files, const std::string& path) {
  TROUPE_TRY(Manifest manifest, verified(files, path));
  StoredCheckpoint all{{manifest}, path, {}};
  CheckpointData& data = all.data;
  std::map<std::string, ResourceName> resources;
  for (const ManifestResource& each : manifest.resources) resources[each.file] = each.resource;
  for (const ManifestFile& record : manifest.files) {
    if (auto resource = resources.find(record.name); resource != resources.end()) {
      TROUPE_TRY(Tensor state, read_state(files, join(path, record.name)));
      data.resources.push_back({resource->second, std::move(state)});
      continue;
    }
    if (record.name != kProgram) continue;
    TROUPE_TRY(const auto bytes, read_file(files, join(path, record.name), kMaxProgram));
    if (Status read = decode_program(bytes, data); !read.ok())
      return data_loss(record.name + " cannot be read: " + read.message());
  }
  if (manifest.tensors_sha256.empty()) {
    TROUPE_TRY(read_all_tensors(files, path, manifest, data));
  } else {
    std::erase_if(manifest.files, [](const ManifestFile& file) { return file.tensors.empty(); });
    all.files = std::move(manifest.files);
  }
  return all;
}

Expected<CheckpointData> read_verified(FileSystem& files, const std::string& path) {
  TROUPE_TRY(StoredCheckpoint all, open_verified(files, path));
  for (const CheckpointFile& file : all.files) {
    TROUPE_TRY(const std::vector<Tensor> read,
               read_stored(files, join(path, file.name), file.tensors));
    for (std::size_t i = 0; i < read.size(); ++i)
      all.data.tensors.emplace(file.tensors[i].name, read[i]);
  }
  return std::move(all.data);
}

// Of a checkpoint that was read. What cannot be read now may be whole.
bool is_damage(const Status& status) {
  return status.code() == Code::data_loss || status.code() == Code::not_found;
}

std::string in_checkpoint(const std::string& path) { return "in the checkpoint '" + path + "'"; }

}  // namespace

// ------------------------------------------------------------------ shards

Expected<std::vector<CheckpointFile>> write_shards(FileSystem& files, const std::string& folder,
                                                   const std::string& name,
                                                   const std::map<std::string, Tensor>& tensors,
                                                   std::uint64_t shard_bytes) {
  std::vector<CheckpointFile> written;
  Safetensors shard;
  std::map<std::string, Tensor> other;
  std::uint64_t bytes = 0;
  auto flush = [&]() -> Status {
    const std::string file = numbered(name + "-", written.size()) + std::string(kShardSuffix);
    TROUPE_TRY(CheckpointFile record, write_recorded(files, folder, file, [&](WritableFile& f) {
                 return write_safetensors(f, shard);
               }));
    for (const auto& [each, tensor] : shard.tensors)
      record.tensors.push_back(stored_of(each, tensor));
    written.push_back(std::move(record));
    shard.tensors.clear();
    bytes = 0;
    return ok_status();
  };
  for (const auto& [each, tensor] : tensors) {
    if (!safetensors_holds(tensor.dtype())) {
      other.emplace(each, tensor);
      continue;
    }
    if (!shard.tensors.empty() && bytes + tensor.bytes() > shard_bytes) TROUPE_TRY(flush());
    shard.tensors.emplace(each, tensor);
    bytes += tensor.bytes();
  }
  if (!shard.tensors.empty()) TROUPE_TRY(flush());
  if (other.empty()) return written;
  TROUPE_TRY(CheckpointFile record,
             write_recorded(files, folder, name + std::string(kOtherSuffix),
                            [&](WritableFile& f) { return write_other(f, other); }));
  for (const auto& [each, tensor] : other) record.tensors.push_back(stored_of(each, tensor));
  written.push_back(std::move(record));
  return written;
}

Expected<std::string> text_of(const std::vector<CheckpointFile>& shards) {
  return detail::format_files(shards);
}

Expected<std::vector<CheckpointFile>> parse_shards(std::string_view text) {
  auto shards = detail::parse_files(text);
  if (!shards.ok()) return shards.status().in("in the answer of who wrote a shard");
  return shards;
}

Expected<std::vector<Tensor>> read_stored(FileSystem& files, const std::string& file,
                                          const std::vector<StoredTensor>& stored) {
  auto opened = files.open(file);
  if (opened.status().code() == Code::not_found)
    return not_found("'" + file +
                     "' is not there: the folder of checkpoints has to be shared by all machines "
                     "of the job");
  std::vector<std::string> names;
  for (const StoredTensor& each : stored) names.push_back(each.name);
  const auto read = [&]() -> Expected<std::vector<Tensor>> {
    TROUPE_TRY(opened.status());
    if (!file.ends_with(kOtherSuffix)) return read_safetensors(**opened, names);
    std::map<std::string, Tensor> tensors;
    TROUPE_TRY(read_other(files, file, tensors));
    std::vector<Tensor> found;
    for (const std::string& name : names) {
      if (!tensors.contains(name)) return not_found("it has no tensor '" + name + "'");
      found.push_back(tensors.at(name));
    }
    return found;
  };
  auto tensors = read();
  if (tensors.status().code() == Code::not_found)
    return data_loss(tensors.status().message()).in("in '" + file + "'");
  if (!tensors.ok()) return tensors.status().in("in '" + file + "'");
  for (std::size_t i = 0; i < stored.size(); ++i) {
    const Tensor& tensor = (*tensors)[i];
    if (tensor.dtype() != stored[i].dtype || tensor.shape() != stored[i].shape ||
        tensor_sha256(tensor) != stored[i].sha256)
      return data_loss("'" + names[i] + "' in '" + file + "' is not what the manifest states");
  }
  return tensors;
}

// ------------------------------------------------------------------ writing

CheckpointDraft::CheckpointDraft(FileSystem& files, std::string dir)
    : files_(&files),
      dir_(std::move(dir)),
      temporary_(join(dir_, std::string(kTemporary) + "next" + std::string(kSuffix))) {}

CheckpointDraft::CheckpointDraft(CheckpointDraft&& other) noexcept
    : files_(other.files_),
      dir_(std::move(other.dir_)),
      temporary_(std::move(other.temporary_)),
      token_(std::move(other.token_)),
      over_(std::exchange(other.over_, true)) {}

CheckpointDraft::~CheckpointDraft() {
  if (!over_) (void)files_->remove_dir(temporary_);
}

Expected<CheckpointDraft> CheckpointDraft::begin(const std::string& dir, FileSystem& files) {
  CheckpointDraft draft(files, dir);
  TROUPE_TRY(files.make_dirs(dir));
  // What it cannot remove is in nobody's way, but for an earlier draft.
  const Status tidied = tidy_checkpoints(dir, files);
  const auto begun = [&]() -> Status {
    const Status made = files.make_dir(draft.temporary_);
    if (made.code() == Code::already_exists && !tidied.ok()) return tidied;
    TROUPE_TRY(made);
    draft.over_ = false;
    draft.token_ = random_text();
    TROUPE_TRY(auto file, files.create(join(draft.temporary_, kToken)));
    return file->append(std::as_bytes(std::span(draft.token_)));
  };
  if (Status status = begun(); !status.ok())
    return status.in("while beginning a checkpoint in '" + dir + "'");
  return draft;
}

Status check_draft(FileSystem& files, const std::string& folder, const std::string& token) {
  const auto there = read_file(files, join(folder, kToken), 64);
  if (there.ok() &&
      std::string_view(reinterpret_cast<const char*>(there->data()), there->size()) == token)
    return ok_status();
  if (!there.ok() && there.status().code() != Code::not_found) return there.status();
  return failed_precondition(
      "'" + folder +
      "' is not the folder into which the program writes its checkpoint: the folder "
      "of checkpoints has to be shared by all machines of the job (a Job with --gather needs "
      "none)");
}

// Writes everything but the shards, and makes the temporary directory durable.
Status CheckpointDraft::finish_folder(const CheckpointData& data,
                                      std::vector<CheckpointFile> shards,
                                      const CheckpointOptions& options) {
  Manifest manifest{data};
  manifest.files = std::move(shards);
  if (!data.tensors.empty()) {
    TROUPE_TRY(auto own,
               write_shards(*files_, temporary_, "shard", data.tensors, options.shard_bytes));
    manifest.files.insert(manifest.files.end(), std::make_move_iterator(own.begin()),
                          std::make_move_iterator(own.end()));
  }
  TROUPE_TRY(write_resources(*files_, temporary_, data, manifest));
  TROUPE_TRY(write_program(*files_, temporary_, data, manifest));
  std::set<std::string> named;
  for (const ManifestFile& file : manifest.files) named.insert(file.name);
  TROUPE_TRY(const auto there, files_->list(temporary_));
  for (const std::string& name : there)
    if (named.erase(name) == 0) TROUPE_TRY(files_->remove(join(temporary_, name)));
  if (!named.empty())
    return failed_precondition("'" + *named.begin() +
                               "' is not in its folder, which has to be shared by all machines of "
                               "the job");
  TROUPE_TRY(std::string text, detail::format_manifest(manifest));
  if (text.size() > kMaxManifest) return invalid_argument("the manifest would be above 64 MiB");
  TROUPE_TRY(auto file, files_->create(join(temporary_, kManifest)));
  TROUPE_TRY(file->append(std::as_bytes(std::span(text))));
  TROUPE_TRY(file->sync());
  return files_->sync_dir(temporary_);
}

Status CheckpointDraft::move_into_place(const std::string& path) {
  TROUPE_TRY(const auto names, files_->list(dir_));
  const bool there =
      std::find(names.begin(), names.end(), path.substr(dir_.size() + 1)) != names.end();
  if (there) TROUPE_TRY(files_->list(path).status());  // fails if it is not a directory
  TROUPE_TRY(there ? replace(path) : files_->rename(temporary_, path));
  return files_->sync_dir(dir_);
}

// Where names cannot be swapped there is a moment without the checkpoint, in which readers find the
// old one by its other name.
Status CheckpointDraft::replace(const std::string& path) {
  const Status swapped = files_->exchange(temporary_, path);
  if (swapped.code() != Code::unimplemented) return swapped;
  const std::string old = join(dir_, replaced_name(path.substr(dir_.size() + 1)));
  TROUPE_TRY(files_->rename(path, old));
  const Status moved = files_->rename(temporary_, path);
  if (!moved.ok()) (void)files_->rename(old, path);
  return moved;
}

Expected<CheckpointInfo> CheckpointDraft::finish(const CheckpointData& data,
                                                 std::vector<CheckpointFile> shards,
                                                 const CheckpointOptions& options) {
  const auto writable = [&]() -> Status {
    for (const auto& [name, tensor] : data.tensors)
      if (!tensor.defined()) return invalid_argument("'" + name + "' has no value to write");
    for (const SavedResource& saved : data.resources)
      if (saved.state.dtype() != DType::u8)
        return invalid_argument(saved.resource.text() + " has no state to write");
    return ok_status();
  };
  const std::string path = join(dir_, checkpoint_name(data.step));
  Status written = writable();
  if (written.ok()) {
    written = finish_folder(data, std::move(shards), options);
    if (written.ok()) written = move_into_place(path);
    if (!written.ok()) written = written.in("while writing the checkpoint '" + path + "'");
  }
  over_ = true;
  // After a success, these are the rest of a replaced checkpoint.
  Status cleaned = tidy_checkpoints(dir_, *files_);
  TROUPE_TRY(written);
  const Status pruned = prune(*files_, dir_, data.step, options);
  if (cleaned.ok()) cleaned = pruned;
  if (!cleaned.ok())
    TROUPE_LOG(warning, "serialization/checkpoint", "old ones stay: " + cleaned.text());
  return CheckpointInfo{data.step, path};
}

Expected<CheckpointInfo> write_checkpoint(const std::string& dir, const CheckpointData& data,
                                          const CheckpointOptions& options, FileSystem& files) {
  TROUPE_TRY(CheckpointDraft draft, CheckpointDraft::begin(dir, files));
  return draft.finish(data, {}, options);
}

// ------------------------------------------------------------------ reading

Expected<std::vector<CheckpointInfo>> list_checkpoints(const std::string& dir, FileSystem& files) {
  TROUPE_TRY(auto names, files.list(dir));
  std::vector<CheckpointInfo> out;
  for (const std::string& name : names) {
    if (auto step = step_of(name)) out.push_back({*step, join(dir, name)});
    if (auto step = replaced_step_of(name); step && !has_step(names, *step))
      out.push_back({*step, join(dir, name)});
  }
  std::sort(out.begin(), out.end(), [](const auto& a, const auto& b) { return a.step < b.step; });
  return out;
}

Status verify_checkpoint(const std::string& path, FileSystem& files) {
  Status status = verified(files, path).status();
  return status.ok() ? status : status.in(in_checkpoint(path));
}

std::optional<Status> verify_listed(const CheckpointInfo& info, FileSystem& files) {
  Status status = verify_checkpoint(info.path, files);
  if (status.ok()) return status;
  if (files.list(info.path).status().code() == Code::not_found) return std::nullopt;
  return verify_checkpoint(info.path, files);  // it may have been replaced while it was read
}

Expected<CheckpointInfo> latest_checkpoint(const std::string& dir, FileSystem& files) {
  TROUPE_TRY(auto all, list_checkpoints(dir, files));
  std::string reasons;
  for (auto info = all.rbegin(); info != all.rend(); ++info) {
    Status status = verify_checkpoint(info->path, files);
    if (status.ok()) return *info;
    if (!is_damage(status)) return status;
    TROUPE_LOG(warning, "serialization/checkpoint", "passed over: " + status.text());
    reasons += "; " + status.text();
  }
  return not_found("no checkpoint that is whole in '" + dir + "'" + reasons);
}

Status tidy_checkpoints(const std::string& dir, FileSystem& files) {
  TROUPE_TRY(auto names, files.list(dir));
  Status first;
  for (const std::string& name : names) {
    const auto replaced = replaced_step_of(name);
    Status tidied;
    if (replaced && !has_step(names, *replaced))
      tidied = files.rename(join(dir, name), join(dir, checkpoint_name(*replaced)));
    else if (replaced || (name.starts_with(kTemporary) && name.ends_with(kSuffix)))
      tidied = files.remove_dir(join(dir, name));
    if (first.ok()) first = tidied;
  }
  return first;
}

Status check_is_latest(const std::string& dir, std::uint64_t step, FileSystem& files) {
  TROUPE_TRY(const auto all, list_checkpoints(dir, files));
  for (const CheckpointInfo& other : all) {
    if (other.step <= step) continue;
    Status status = verify_checkpoint(other.path, files);
    if (status.ok())
      return failed_precondition("'" + other.path + "' is of a later step than " +
                                 std::to_string(step) +
                                 ", so it would be restored instead: go on from it, or write to "
                                 "another folder");
    if (!is_damage(status)) return status;
  }
  return ok_status();
}

Expected<StoredCheckpoint> open_checkpoint(const std::string& path, FileSystem& files) {
  auto stored = open_verified(files, path);
  if (!stored.ok()) return stored.status().in(in_checkpoint(path));
  return stored;
}

Expected<CheckpointData> read_checkpoint(const std::string& path, FileSystem& files) {
  auto data = read_verified(files, path);
  if (!data.ok()) return data.status().in(in_checkpoint(path));
  return data;
}

}  // namespace troupe
