// Files in the folders of a folder, whose names are their classes.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "ops/data/source.hpp"

namespace troupe {

// Names alone: files are opened when they are read. Those that begin with a dot are left out.
class LabelledFolder {
 public:
  // `images`: only files named as PNG or JPEG files are. not_found and data_loss name the folder;
  // one without classes, or without files, is data_loss.
  static Expected<LabelledFolder> list(const std::string& path, bool images);

  std::uint64_t count() const { return names_.size(); }
  std::int64_t label(std::uint64_t file) const;
  std::string path(std::uint64_t file) const;
  // All of its bytes; data_loss for more than 1 GiB. Errors name the file.
  Expected<std::string> content(std::uint64_t file) const;

 private:
  std::string path_;
  std::vector<std::string> classes_;   // ascending
  std::vector<std::uint64_t> begins_;  // of each class, in names_
  std::vector<std::string> names_;     // ascending in each class
};

// Its files in order; what becomes of each says the kind of source.
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
