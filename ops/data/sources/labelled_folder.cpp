#include "ops/data/sources/labelled_folder.hpp"

#include <algorithm>

#include "ops/data/byte_stream.hpp"

namespace troupe {

namespace {

// Letters of ASCII alone, whatever the locale says.
bool ends_like(std::string_view name, std::string_view ending) {
  if (name.size() < ending.size()) return false;
  name.remove_prefix(name.size() - ending.size());
  return std::equal(name.begin(), name.end(), ending.begin(), [](char a, char b) {
    return (a >= 'A' && a <= 'Z' ? char(a - 'A' + 'a') : a) == b;
  });
}

bool is_named_as_image(std::string_view name) {
  return ends_like(name, ".png") || ends_like(name, ".jpg") || ends_like(name, ".jpeg");
}

Status in_folder(const std::string& path, const char* why) {
  return data_loss("folder '" + path + "' " + why);
}

}  // namespace

Expected<LabelledFolder> LabelledFolder::list(const std::string& path, bool images) {
  LabelledFolder out;
  out.path_ = path;
  TROUPE_TRY(const auto classes, list_local_folder(path));
  for (const FolderEntry& entry : classes) {
    if (!entry.folder || entry.name.starts_with('.')) continue;
    out.classes_.push_back(entry.name);
    out.begins_.push_back(out.names_.size());
    TROUPE_TRY(const auto files, list_local_folder(path + "/" + entry.name));
    for (const FolderEntry& file : files)
      if (!file.folder && !file.name.starts_with('.') && (!images || is_named_as_image(file.name)))
        out.names_.push_back(file.name);
  }
  if (out.classes_.empty()) return in_folder(path, "has no folders, which are its classes");
  if (out.names_.empty())
    return in_folder(
        path, images ? "has no PNG or JPEG files in its folders" : "has no files in its folders");
  return out;
}

std::int64_t LabelledFolder::label(std::uint64_t file) const {
  return std::upper_bound(begins_.begin(), begins_.end(), file) - begins_.begin() - 1;
}

std::string LabelledFolder::path(std::uint64_t file) const {
  return path_ + "/" + classes_[std::size_t(label(file))] + "/" + names_[file];
}

Expected<std::string> LabelledFolder::content(std::uint64_t file) const {
  TROUPE_TRY(const DataFilePtr opened, open_local_file(path(file)));
  if (opened->size() > kMostInFile)
    return in_file(data_loss(std::to_string(opened->size()) + " bytes, and no more than " +
                             std::to_string(kMostInFile) + " are read"),
                   *opened);
  std::string content(opened->size(), '\0');
  TROUPE_TRY(opened->read_at(0, content));
  return content;
}

}  // namespace troupe
