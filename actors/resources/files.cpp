#include "actors/resources/files.hpp"

#include <algorithm>

#include "core/hash.hpp"
#include "serialization/safetensors.hpp"

namespace troupe {
namespace {

Expected<std::vector<std::string>> names_of(const NodeDef& node) {
  auto it = node.attrs.find("names");
  if (it == node.attrs.end() || !it->second.get<std::vector<std::string>>())
    return invalid_argument("node '" + node.name + "' has no list of names");
  return *it->second.get<std::vector<std::string>>();
}

// A fed prefix may have any shape if the node's is unknown.
Expected<std::string> path_of(const Tensor& prefix) {
  if (prefix.dtype() != DType::string || prefix.rank() != 0)
    return invalid_argument(std::string("prefix is ") + std::string(dtype_name(prefix.dtype())) +
                            prefix.shape().text() + ", not one string");
  return prefix.item<std::string>() + ".safetensors";
}

Expected<Safetensors> content_of(const NodeDef& node, const std::vector<Tensor>& inputs) {
  TROUPE_TRY(std::vector<std::string> names, names_of(node));
  if (inputs.size() != names.size() + 1)
    return invalid_argument("node '" + node.name + "' saves " + std::to_string(names.size()) +
                            " names and was given " + std::to_string(inputs.size() - 1));
  Safetensors content;
  for (std::size_t i = 0; i < names.size(); ++i)
    if (!content.tensors.emplace(names[i], inputs[i + 1]).second)
      return invalid_argument("node '" + node.name + "' saves two tensors as '" + names[i] + "'");
  return content;
}

Expected<std::vector<Tensor>> take(const NodeDef& node, const SafetensorsFile& file,
                                   const std::string& path) {
  TROUPE_TRY(std::vector<std::string> names, names_of(node));
  std::vector<Tensor> outputs;
  for (std::size_t i = 0; i < names.size(); ++i) {
    const SafetensorsEntry* found = file.find(names[i]);
    if (found == nullptr) return not_found("'" + path + "' has no tensor '" + names[i] + "'");
    if (i < node.out_types.size() && found->dtype != node.out_types[i])
      return invalid_argument("'" + names[i] + "' in '" + path + "' is " + found->type_text() +
                              ", not " + std::string(dtype_name(node.out_types[i])));
    if (i < node.out_shapes.size() && !node.out_shapes[i].accepts(found->shape))
      return invalid_argument("'" + names[i] + "' in '" + path + "' has shape " +
                              found->shape.text() + ", not " + node.out_shapes[i].text());
    TROUPE_TRY(Tensor value, file.read(*found));
    outputs.push_back(std::move(value));
  }
  return outputs;
}

// Of what the replicas of a node save to one place, the first one's counts.
bool counts(const SavedFiles& all, const WriteKey& key, const std::string& place) {
  return std::none_of(all.files.lower_bound({key.node, 0, {}}), all.files.find(key),
                      [&](const auto& other) {
                        return other.first.replica < key.replica && other.second.place == place;
                      });
}

}  // namespace

Files::Files(FileSystem& files, std::uint64_t unique)
    : files_(files), unique_(std::to_string(unique)) {}

// External::verb of the ops in ops/kernels/io/save_restore.cpp.
Expected<std::vector<Tensor>> Files::perform(ResourceRequest& request) {
  const AttemptId& attempt = request.attempt.id;
  const std::string& verb = request.external().verb;
  const Item& item = request.items.front();
  if (verb == "restore") return restore(attempt, item);
  if (verb != "save") return unimplemented("files cannot be asked to '" + verb + "'");
  TROUPE_TRY(write(attempt, item));
  return std::vector<Tensor>{};
}

Status Files::write(const AttemptId& attempt, const Item& item) {
  TROUPE_TRY(Safetensors content, content_of(item.node->def, item.operands));
  TROUPE_TRY(std::string path, path_of(item.operands[0]));
  if (const SavedFiles* log = find_log(attempt); log && log->files.contains(item.key))
    return ok_status();
  if (files_.list(path).ok()) return failed_precondition("'" + path + "' is a directory");
  TROUPE_TRY(const std::string place, files_.place_of(path));
  const std::string written =
      name_beside(place, unique_ + "." + std::to_string(written_++) + ".tmp");
  TROUPE_TRY(write_synced(files_, written, [&](WritableFile& file) {
               return write_safetensors(file, content);
             }).in("writing '" + path + "'"));
  logs_[attempt].files[item.key] = {std::move(path), place, written};
  return ok_status();
}

Expected<std::vector<Tensor>> Files::restore(const AttemptId& attempt, const Item& item) const {
  TROUPE_TRY(std::string path, path_of(item.operands[0]));
  std::string from = place_to_read(files_, path);
  if (const SavedFiles* log = find_log(attempt))
    for (const auto& [key, file] : log->files)
      if (file.path == path) from = file.written;
  TROUPE_TRY(const SafetensorsFile file, SafetensorsFile::open(from, files_));
  return take(item.node->def, file, path);
}

Expected<std::pair<std::uint64_t, SavedFiles>> Files::record_of(CommitNumber, const AttemptId&,
                                                                SavedFiles log) {
  std::uint64_t hash = 0;
  for (const auto& [key, file] : log.files)
    hash = hash_text(file.path, hash_combine(hash_combine(hash, key.node), key.replica));
  return std::pair{hash, std::move(log)};
}

Status Files::write_record(const SavedFiles& record, StateWriter& out) const {
  out.number(record.files.size());
  for (const auto& [key, file] : record.files) {
    out.key(key);
    out.text(file.path);
    out.text(file.place);
    out.text(file.written);
  }
  return ok_status();
}

Expected<SavedFiles> Files::read_record(StateReader& in) const {
  SavedFiles record;
  for (std::uint64_t n = in.count(); n > 0 && in.ok(); --n) {
    const WriteKey key = in.key();
    SavedFiles::File file{in.text(), in.text(), in.text()};
    // The file will be moved or removed: it must be one that write() writes.
    const std::string beside = name_beside(file.place, "");
    if (!file.written.starts_with(beside) || !file.written.ends_with(".tmp") ||
        file.written.find('/', beside.size()) != std::string::npos)
      in.refuse("a file that was not written beside its place");
    if (!record.files.emplace(key, std::move(file)).second) in.refuse("a key that is there twice");
  }
  return record;
}

// A file that cannot be moved does not stop the others.
Status Files::commit(CommitNumber, const AttemptId&, SavedFiles record, Outputs&) {
  Status all;
  for (const auto& [key, file] : record.files) {
    if (!counts(record, key, file.place)) {
      (void)files_.remove(file.written);
      continue;
    }
    Status status = put_in_place(files_, file.written, file.place);
    if (all.ok() && !status.ok()) all = status.in("putting '" + file.path + "' in its place");
  }
  return all;
}

void Files::dropped(SavedFiles& log) {
  for (const auto& [key, file] : log.files) (void)files_.remove(file.written);
  log.files.clear();
}

ResourceKind files_kind() {
  return {.name = "files",
          .outside = true,
          .make_with_files = [](FileSystem& files, std::uint64_t unique) {
            return std::make_unique<Files>(files, unique);
          }};
}

}  // namespace troupe
