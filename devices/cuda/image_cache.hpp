// ImageCache: compiled programs, and what was measured, on disk.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace troupe::cuda {

// Files named by a key, which is a hash of all that an image depends on. Several processes may use
// one folder: a file appears whole or not at all, and one that was changed since is not used. It is
// never needed: what cannot be read is made anew, and what cannot be written is logged.
class ImageCache {
 public:
  // The folder that TROUPE_CUDA_CACHE names ("-": none); without it troupe/cuda in XDG_CACHE_HOME
  // or
  // ~/.cache, if `by_default`.
  static ImageCache standard(bool by_default);
  // Empty: nothing is kept.
  explicit ImageCache(std::string folder) : folder_(std::move(folder)) {}

  std::optional<std::string> read(const std::string& key) const;
  // Whether it is there now.
  bool write(const std::string& key, const std::string& image) const;
  // Writes it unless it is there; what is there then, of whoever was first. `text` if nothing can
  // be kept.
  std::string add(const std::string& key, const std::string& text) const;
  const std::string& folder() const { return folder_; }

 private:
  bool write(const std::string& key, const std::string& image, bool replaces) const;
  std::string path(const std::string& key) const;
  std::string folder_;
};

}  // namespace troupe::cuda
