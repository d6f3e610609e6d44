// Files in the subfolders of a folder; a subfolder's name is the class of its files.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "ops/data/source.hpp"

namespace troupe {

// Has only names; files are opened when they are read. Names that begin with a dot are left out.
class LabelledFolder {
 public:
  // `images`: only files with names of PNG or JPEG files. Errors name the folder: not_found, or
  // data_loss if it has no classes or no files.
  static Expected<LabelledFolder> list(const std::string& path, bool images);

  std::uint64_t count() const { return names_.size(); }
  std::int64_t label(std::uint64_t file) const;
  std::string path(std::uint64_t file) const;
  // A file's content; data_loss for more than 1 GiB. Errors name the file.
  Expected<std::string> content(std::uint64_t file) const;

 private:
  std::string path_;
  std::vector<std::string> classes_;   // ascending
  std::vector<std::uint64_t> begins_;  // of each class, in names_
  std::vector<std::string> names_;     // ascending in each class
};

// A source of these files in order; subclasses read them.
class LabelledFolderSource : public Source {
 public:
  LabelledFolderSource(Signature signature, LabelledFolder folder)
      : Source(std::move(signature)), folder_(std::move(folder)) {}
  std::optional<std::uint64_t> count() const final { return folder_.count(); }
  Origin origin(std::uint64_t index) const final { return {nullptr, index, 0, this}; }
  std::string where(std::uint64_t index) const final {
    return "file '" + folder_.path(index) + "'";
  }

 protected:
  const LabelledFolder& folder() const { return folder_; }

 private:
  const LabelledFolder folder_;
};

}  // namespace troupe
