// Files in the folders of a folder, whose names are their classes.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "ops/data/data_file.hpp"

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

}  // namespace troupe
